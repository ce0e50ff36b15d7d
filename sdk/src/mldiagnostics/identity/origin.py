"""What all records of one process have in common: which run, which process of it, on which host."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.identity.resolve import ResolvedIdentity


@dataclass(frozen=True, slots=True)
class Origin:
    """One process of one attempt at a run.

    `rank` counts processes over the whole run and `local_rank` those on this host, both from 0. `attempt` counts
    restarts of the workload from 0; `incarnation` is 8 hex digits that no other process of the run has. `slice` is
    the TPU slice, where there is one. `storage` is the root for all runs, a path or a URL. `project` and `region` of
    Google Cloud are what the program said, empty if it left them to be looked up.
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
        """The run's place, `<storage>/<run id>`: a path or a URL."""
        return f"{self.storage.rstrip('/')}/{self.run_id}"

    @classmethod
    def here(
        cls, whereabouts: ResolvedIdentity, *, run_id: str, name: str, storage: str, project: str = "", region: str = ""
    ) -> Origin:
        """Return the origin of this process, with an incarnation of its own."""
        place = whereabouts.place
        return cls(
            run_id=run_id,
            name=name,
            storage=storage,
            incarnation=os.urandom(4).hex(),
            host=whereabouts.host,
            attempt=place.attempt,
            rank=place.rank,
            world_size=place.world_size,
            local_rank=place.local_rank,
            slice=place.slice,
            namespace=whereabouts.namespace,
            project=project,
            region=region,
        )

    def after_fork(self) -> Origin:
        """Return the origin of a forked child: the same place in the run, but files of its own."""
        return replace(self, incarnation=os.urandom(4).hex())
