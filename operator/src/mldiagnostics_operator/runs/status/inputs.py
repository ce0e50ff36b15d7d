"""Reads all that decides the status of a run."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.formats import optional_time
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_operator.runs.run_directory import root_of_run
from mldiagnostics_operator.runs.status.next_status import RunInputs

if TYPE_CHECKING:
    from mldiagnostics_api.captures.policy import Policy

    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.runs.watches.run_watches import RunWatches
    from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities

_log: Final = logging.getLogger(__name__)


class InputReader:
    """Reads what watches, reports and captures have of a run.

    Args:
        watches: The objects of the cluster.
        identities: Read workloads that no watch delivers.
        reports: Reports of processes.
        exchange: Sessions of captures.
        view_url: URL of the web view; empty without one.
        policy: The default storage, and the storage that each namespace may use.
    """

    def __init__(
        self,
        watches: RunWatches,
        identities: WorkloadIdentities,
        reports: ReportTable,
        exchange: RunExchange,
        *,
        view_url: str,
        policy: Policy,
    ) -> None:
        self._watches = watches
        self._identities = identities
        self._reports = reports
        self._exchange = exchange
        self._view_url = view_url
        self._policy = policy

    async def read(self, run: Run) -> RunInputs:
        """Return the inputs of a run as they are now."""
        await self._observe(run)
        workload, pods = run.observed, self._watches.pods
        queue = self._watches.queues.verdict(run.meta.namespace, workload.uid) if workload else None
        if queue is not None and queue.evicted is not None:
            pods.note(run.pods_key, queue.evicted)  # it stays when the workload is admitted again
        return RunInputs(
            facts=run.facts(
                self._reports.view(run.report_key) if run.run_id else None,
                root_of_run(self._policy, run.meta.namespace, run.storage_location),
                listening_since=datetime.fromtimestamp(self._reports.listening_since, UTC),
            ),
            created=optional_time(workload.metadata.get("creationTimestamp")) if workload else None,
            queue=queue,
            pods=pods.of(run.pods_key),
            refused=pods.refused(run.pods_key),
            sessions=(*self._exchange.sessions(run.report_key), *run.stored_sessions),
            findings=self._exchange.findings(run.report_key),
            signals=run.signals,
            limits=run.limits,
            url=f"{self._view_url}/{run.run_id}" if self._view_url and run.run_id else "",
        )

    async def _observe(self, run: Run) -> None:
        """Observe the workload of a run: as its watch delivers it, else by a request."""
        reference, kind = run.workload, run.kind
        if reference is None or kind is None or run.gone or run.finished:
            return
        watched = self._watches.workloads.find(kind, run.meta.namespace, reference.name)
        if watched is not None and watched.uid == (reference.uid or watched.uid):
            run.observed, run.is_current = watched, True
        elif not run.is_current:
            run.is_current = True  # until the next resync, even if it cannot be read
            try:
                observed = await self._identities.read(kind, run.meta.namespace, reference.name)
            except ClusterError as error:
                _log.debug("The workload of %(run)s cannot be read: %(error)s", {"run": run.key.title, "error": error})
                return
            run.gone = observed is None or observed.uid != (reference.uid or observed.uid)
            run.observed = run.observed if run.gone else observed
