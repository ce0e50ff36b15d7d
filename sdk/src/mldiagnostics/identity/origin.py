"""The identity that all records of one process share: run, process and host."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.identity.resolve import ResolvedIdentity


@dataclass(frozen=True, slots=True)
class Origin:
    """One process of one attempt of a run.

    Attributes:
        run_id: Id of the run.
        name: Name of the run.
        storage: Root of all runs, a path or a URL.
        incarnation: 8 hex digits, unique among the processes of the run.
        host: Name of the host or pod.
        attempt: Number of restarts of the workload, from 0.
        rank: Number of the process in the run, from 0.
        world_size: Number of processes in the run.
        local_rank: Number of the process on its host, from 0.
        slice: Number of the TPU slice, if any.
        namespace: Kubernetes namespace, empty outside a cluster.
        project: Google Cloud project that the program named, else empty.
        region: Google Cloud region that the program named, else empty.
    """

    run_id: str
    name: str
    storage: str
    incarnation: str
    host: str
    attempt: int = 0
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    slice: int | None = None
    namespace: str = ""
    project: str = ""
    region: str = ""

    @property
    def directory(self) -> str:
        """Directory of the run, `<storage>/<run id>`: a path or a URL."""
        return f"{self.storage.rstrip('/')}/{self.run_id}"

    @classmethod
    def here(
        cls, identity: ResolvedIdentity, *, run_id: str, name: str, storage: str, project: str = "", region: str = ""
    ) -> Origin:
        """Return the origin of this process, with an incarnation of its own."""
        process = identity.process
        return cls(
            run_id=run_id,
            name=name,
            storage=storage,
            incarnation=os.urandom(4).hex(),
            host=identity.host,
            attempt=process.attempt,
            rank=process.rank,
            world_size=process.world_size,
            local_rank=process.local_rank,
            slice=process.slice,
            namespace=identity.namespace,
            project=project,
            region=region,
        )

    def after_fork(self) -> Origin:
        """Return the origin of a forked child.

        The same rank, but an incarnation of its own.
        """
        return replace(self, incarnation=os.urandom(4).hex())
