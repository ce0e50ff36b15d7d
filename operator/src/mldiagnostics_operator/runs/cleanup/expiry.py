"""Deletes the objects of ended runs by age and number."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to

from mldiagnostics_operator.runs.cleanup.retention import EndedRun, expired_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.runs.status.write_rate import WriteRate

_log: Final = logging.getLogger(__name__)

SWEEP_S: Final = 300.0
"""Pause between two sweeps, each of which lists all ended runs."""
_PAGE: Final = 100


class RunExpiry:
    """Deletes ended runs; in all namespaces if none is named.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces of the runs; None stands for all.
        rate: Limit on all writes of runs.
        ttl_s: Time to live of runs without their own; None keeps them.
        keep: Ended runs without their own time to live that each namespace keeps.
        clock: Wall clock.
        seen: Receives each ended run of a sweep.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str | None],
        rate: WriteRate,
        *,
        ttl_s: int | None,
        keep: int,
        clock: Clock,
        seen: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._namespaces = namespaces
        self._rate = rate
        self._ttl_s = ttl_s
        self._keep = keep
        self._clock = clock
        self._seen = seen

    async def run(self) -> None:
        """Delete expired runs until cancelled."""
        while True:
            try:
                await self.sweep()
            except ClusterError as error:
                _log.warning("Ended runs could not be listed, they are deleted later: %(error)s", {"error": error})
            await asyncio.sleep(SWEEP_S)

    async def sweep(self) -> None:
        """Delete the runs that have expired. Raises ClusterError."""
        ended: list[EndedRun] = []
        for namespace in self._namespaces:
            path = path_to(*RUNS.gvr, namespace=namespace)
            for phase in sorted(FINISHED_RUN_PHASES):
                ended += await self._cluster.items(path, self._reduce, fields=f"status.phase={phase}", page=_PAGE)
        for run in expired_runs(ended, now=self._clock(), ttl_s=self._ttl_s, keep=self._keep):
            await self._rate.take(run.namespace)
            await self._delete(run)

    async def _delete(self, run: EndedRun) -> None:
        try:
            await self._cluster.delete(path_to(*RUNS.gvr, namespace=run.namespace, name=run.name), uid=run.uid)
        except (NotFound, Conflict):
            return
        except ClusterError as error:
            _log.warning(
                "Run %(namespace)s/%(object)s has expired and could not be deleted, retrying later: %(error)s",
                {"namespace": run.namespace, "object": run.name, "error": error},
            )
        else:
            _log.info(
                "Deleted the ended run %(namespace)s/%(object)s", {"namespace": run.namespace, "object": run.name}
            )

    def _reduce(self, body: Mapping[str, Any]) -> EndedRun | None:
        """Return the facts of an ended run; None without its end, or if it is deleted."""
        self._seen(body)
        metadata, completed = body["metadata"], (body.get("status") or {}).get("completionTime")
        if completed is None or "deletionTimestamp" in metadata:
            return None
        own = ((body.get("spec") or {}).get("retention") or {}).get("ttlSecondsAfterFinished")
        return EndedRun(
            metadata["namespace"], metadata["name"], metadata["uid"], datetime.fromisoformat(completed), own
        )
