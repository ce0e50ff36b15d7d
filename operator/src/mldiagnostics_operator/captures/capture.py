"""One capture in this process: from its object to its final status."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.model import Reason
from mldiagnostics_api.names import Phase
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_operator.captures import recovery
from mldiagnostics_operator.captures.attempt import CaptureAttempt
from mldiagnostics_operator.captures.closing import CaptureCloser
from mldiagnostics_operator.captures.reporter import CaptureReporter
from mldiagnostics_operator.captures.stage import CaptureStage, CaptureState, StopReason
from mldiagnostics_operator.captures.takeover import until_abandoned
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from datetime import datetime

    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.services import Services

_log: Final = logging.getLogger(__name__)

_FAILURE_TIMEOUT_S: Final = 60.0


def _is_diagnosed(connection: MLDiagnosticsConnection, *, default: bool) -> bool:
    mode = connection.spec.trigger_capture.diagnosis
    return default if mode is None else mode == "Auto"


class Capture:
    """One capture in this process."""

    def __init__(self, services: Services, connection: MLDiagnosticsConnection) -> None:
        self._services = services
        self._connection = connection
        reporter = CaptureReporter(
            services.cluster,
            services.telemetry,
            connection.metadata,
            connection.status,
            me=services.me,
            clock=services.clock,
        )
        running = connection.status is not None and connection.status.phase is Phase.RUNNING
        self._state = CaptureState(
            CaptureStage.FOREIGN if running else CaptureStage.WAITING, cancel_requested=bool(connection.spec.cancel)
        )
        self._closer = CaptureCloser(
            reporter, self._state, services.clock, diagnoses=_is_diagnosed(connection, default=services.diagnoses)
        )
        self._entry = services.queue.enter(connection.metadata, reporter.report_waiting)
        self._attempts: list[CaptureAttempt] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def finished(self) -> bool:
        """Whether the object has its final status."""
        return self._state.stage is CaptureStage.FINISHED

    def stop(self, reason: StopReason) -> None:
        """Stop early, as far as the stage allows it; returns at once."""
        if self._state.stop(reason) and self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Run the capture to completion; raises CancelledError only if the process ends."""
        self._task = asyncio.current_task()
        try:
            await self._run_unless_stopped()
        except ObjectGone as gone:
            _log.info("The capture ends here: %(error)s", {"error": gone})
            await self._drop()
        except Exception as error:  # noqa: BLE001 - the object gets a final status after any error
            _log.exception("The capture failed with an internal error")
            with suppress(ObjectGone, ClusterError):
                message = (
                    f"the operator could not process the capture because of a bug ({type(error).__name__}); create it "
                    f"again, and report the operator's log of the object with uid {self._connection.metadata.uid}"
                )
                await self._closer.refuse("InternalError", message, timeout_s=_FAILURE_TIMEOUT_S)

    async def _run_unless_stopped(self) -> None:
        """Run, and turn a cancellation by `stop` into its effect."""
        try:
            if self._state.stop_reason is not None:
                raise asyncio.CancelledError  # noqa: TRY301 - it was stopped before its task started
            if self._state.stage is CaptureStage.FOREIGN:
                await self._take_over()
            else:
                await self._attempt(1).run()
        except asyncio.CancelledError:
            if self._state.stop_reason is None or self._task is None:
                raise
            self._task.uncancel()
            if self._state.stop_reason is StopReason.GONE:
                raise ObjectGone("the object was deleted, or another process finished it") from None
            if self._state.stop_reason is StopReason.CANCELLED:
                await self._closer.refuse_cancelled()

    async def _take_over(self) -> None:
        """Continue the attempt of another process, once it is certain that it stopped."""
        services, meta = self._services, self._connection.metadata
        status = await until_abandoned(
            meta, services.cluster, me=services.me, namespace=services.namespace, clock=services.clock
        )
        number, start, deadline = status.attempt or 1, status.planned_start_time, status.deadline
        attempt = self._attempt(number, (start, deadline) if start and deadline else None)
        plan_and_remains = await attempt.find_remains(status)
        if plan_and_remains is None:
            return
        plan, remains = plan_and_remains
        step = recovery.decide(attempt=number, planned_start=start, traces=remains.traces, now=services.clock())
        if self._state.cancel_requested:
            await attempt.finish_interrupted(plan, remains, Reason.CANCELLED)
        elif isinstance(step, recovery.FinishInterrupted):
            await attempt.finish_interrupted(plan, remains, Reason.INTERRUPTED)
        elif isinstance(step, recovery.Resume):
            await attempt.run()
        else:
            await self._closer.reporter.report_retry(number, remains.loss)
            await self._attempt(step.attempt).run()

    def _attempt(self, number: int, planned_times: tuple[datetime, datetime] | None = None) -> CaptureAttempt:
        attempt = CaptureAttempt(
            self._services,
            self._connection,
            self._closer,
            self._entry,
            number=number,
            planned_times=planned_times,
        )
        self._attempts.append(attempt)
        return attempt

    async def _drop(self) -> None:
        """Delete the files of a deleted object; those that another process finished stay."""
        if await self._closer.reporter.is_deleted():
            for attempt in self._attempts:
                await attempt.drop()
