"""The control plane of a leader: certificate, API, and journals of former leaders."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import StoreUnreachable

from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.journal.journal import JournalUnavailable
from mldiagnostics_operator.control_plane.publication import publication
from mldiagnostics_operator.control_plane.slices import sliced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.control_plane.identity.deleted_pods import DeletedPods
    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

UPKEEP_S: Final = 5.0
"""Pause between two looks at the runs in memory."""
SECOND_LOOK_S: Final = 30.0
"""After this time, twice the duration of the Lease, no former leader writes: all journals are read once more."""
RECALL_PAUSE_S: Final = 30.0
"""A journal that could not be read is read again after this time."""
FORGET_S: Final = 3600.0
"""A run that is finished leaves the memory so long after its last report; `limits.MAX_RUNS` counts on it."""


async def serve(
    cluster: ApiClient,
    config: OperatorConfig,
    telemetry: OperatorMetrics,
    table: ReportTable,
    runs: Callable[[], Iterable[RunKey]],
    *,
    storage: Storage,
    deleted_pods: DeletedPods,
    on_record: Callable[[Callable[[RunKey], None]], None] = lambda _: None,
    clock: Callable[[], float] = time.time,
    upkeep_s: float = UPKEEP_S,
    second_look_s: float = SECOND_LOOK_S,
) -> None:
    """Serve the control plane until cancelled.

    Args:
        cluster: Client of the API server.
        config: Settings of the operator.
        telemetry: Metrics of the operator.
        table: The memory of the reports.
        runs: Returns the runs that are not finished: their journals are read, and they stay in memory.
        storage: Opens the directories of journals.
        deleted_pods: Deletions of pods, from the watch of the pods of runs.
        on_record: Gets a function that is to be called with each run whose record of the cluster is new.
        clock: Unix time.
        upkeep_s: Pause in seconds between two calls of `runs`.
        second_look_s: When all journals are read again: a former leader may have written after the first time.
    """
    async with publication.certificate(cluster, config) as certificate:
        plane = ControlPlane(
            cluster,
            config,
            telemetry,
            table,
            certificate,
            storage=storage,
            clock=clock,
            journal_interval_s=limits.JOURNAL_INTERVAL_S,
            account_interval_s=limits.ACCOUNT_INTERVAL_S,
        )
        on_record(plane.note_record)
        with deleted_pods.passed_to(plane.pod_gone, plane.pods_missed):
            async with asyncio.TaskGroup() as group:
                group.create_task(plane.run())
                recalled: set[RunKey] = set()
                failed: dict[RunKey, float] = {}
                second_look = asyncio.get_running_loop().time() + second_look_s
                while True:
                    present = set(runs())
                    recalled &= present
                    failed = {key: at for key, at in failed.items() if key in present}
                    if asyncio.get_running_loop().time() >= second_look:
                        recalled, second_look = set(), math.inf
                    await _recall(plane, present - recalled, recalled, failed)
                    _forget(plane, table, present, clock() - FORGET_S)
                    await sliced(table.count_reporting(clock()))
                    await asyncio.sleep(upkeep_s)


async def _recall(
    plane: ControlPlane, missing: Iterable[RunKey], recalled: set[RunKey], failed: dict[RunKey, float]
) -> None:
    """Read the journals of runs that are new to this leader.

    A journal that cannot be read delays no other one. If the storage does not respond, no more are read now.

    Args:
        plane: The control plane.
        missing: The runs.
        recalled: Gets the runs whose journals were read.
        failed: When the journals of other runs could not be read, by the event loop's clock.
    """
    clock = asyncio.get_running_loop().time
    for key in [key for key in missing if clock() >= failed.get(key, -math.inf) + RECALL_PAUSE_S]:
        failed.pop(key, None)
        try:
            await plane.recall(key)
        except Exception as error:  # noqa: BLE001 - the journals of other runs are read after any error
            failed[key] = clock()
            _log.warning(
                "Earlier reports of %(run)s in %(namespace)s are not known yet: %(error)s",
                {"run": key.run_id, "namespace": key.namespace, "error": error},
                exc_info=not isinstance(error, JournalUnavailable),
            )
            if isinstance(error.__cause__, StoreUnreachable):
                return
        else:
            recalled.add(key)


def _forget(plane: ControlPlane, table: ReportTable, present: Collection[RunKey], before_s: float) -> None:
    """Free the memory of finished runs without a report since `before_s`."""
    for key in table.runs():
        reported = None if key in present else table.view(key)
        if reported is not None and reported.last_received < before_s:
            plane.forget(key)
