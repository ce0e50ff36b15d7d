"""Writes the status and the events of runs, one object at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.runs.run import Run
from mldiagnostics_operator.runs.status.next_status import run_events

if TYPE_CHECKING:
    from mldiagnostics_api.v1alpha1 import MLRunStatus

    from mldiagnostics_operator.runs.services import RunServices
    from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords


class RunWriter:
    """Writes statuses under the limit of all writes of runs.

    Args:
        services: The edges of the leadership.
        records: Receives the runs whose attempts changed.
    """

    def __init__(self, services: RunServices, records: ClusterRecords) -> None:
        self._services = services
        self._records = records

    async def write(self, run: Run, status: MLRunStatus) -> None:
        """Replace the status of a run, and announce what has changed.

        Raises:
            NotFound: The object was deleted.
            ClusterError: The status was not written.
        """
        services = self._services
        before, body = run.status, _body(run, status)  # of the version that was decided on
        await services.rate.take(run.key.namespace)
        run.written = status
        try:
            body = await services.cluster.replace(f"{_path(run)}/status", body)
        except ClusterError as error:
            services.telemetry.runs.status_written("gone" if isinstance(error, NotFound) else "failed")
            raise
        services.telemetry.runs.status_written("written")
        run.absorb(Run.of(body))
        for event in run_events(before, run.status):
            announcement = Announcement(event.reason, event.message, warning=event.warning)
            await announce(services.cluster, RUNS, run.meta, announcement, me=services.me, now=services.clock())
        if before.attempts != run.status.attempts:
            self._records.note(run)
        if before.phase is not run.status.phase:
            services.telemetry.runs.phase(run.status.phase or MLRunPhase.PENDING)

    async def refresh(self, run: Run) -> None:
        """Read the newest version of a run that no watch delivers. Raises ClusterError."""
        run.absorb(Run.of(await self._services.cluster.get(_path(run))))


def _path(run: Run) -> str:
    return path_to(*RUNS.gvr, namespace=run.meta.namespace, name=run.meta.name)


def _body(run: Run, status: MLRunStatus) -> dict[str, Any]:
    """Return the object, with the version that another process must not change."""
    return {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {
            "name": run.meta.name,
            "namespace": run.meta.namespace,
            "uid": run.meta.uid,
            "resourceVersion": run.version,
        },
        "spec": run.spec,
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
