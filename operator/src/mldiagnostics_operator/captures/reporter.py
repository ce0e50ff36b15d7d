"""The reports of one capture: status, events and metrics."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.command_buffers import OFF
from mldiagnostics_api.formats import enumerated
from mldiagnostics_api.names import Phase, SkipReason
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import ClusterError, Unavailable

from mldiagnostics_operator.captures.outcomes import skew
from mldiagnostics_operator.captures.status import StatusBuilder, subject
from mldiagnostics_operator.captures.verdict import Verdict
from mldiagnostics_operator.status_writer import UPDATE_INTERVAL_S, StatusWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mldiagnostics_api.captures.plan import CapturePlan
    from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, ConnectionStatus, ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

_MAX_WAITING_WRITES: Final = 3
"""With two intents and the final status, a capture costs six writes at most, progress aside."""
_WAIT_TIMEOUT_S: Final = 2.0
_INTENT_TIMEOUT_S: Final = 2.0
_FIRST_TRACE_S: Final = 0.5
"""The first stored trace is reported soon: a process that takes over records no target again if one is stored. Hosts
that end together still cost no write of their own."""


class CaptureReporter:
    """Reports one capture; methods that write raise ObjectGone."""

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: OperatorMetrics,
        meta: ObjectMeta,
        status: ConnectionStatus | None,
        *,
        me: str,
        clock: Clock,
    ) -> None:
        holder = status.holder if status is not None else None
        self._builder = StatusBuilder(status, generation=meta.generation, me=me)
        self._writer = StatusWriter(
            cluster, telemetry, CONNECTIONS, meta, me=me, holder=holder, has_status=status is not None, clock=clock
        )
        self._telemetry = telemetry
        self._clock = clock
        self._created = meta.creation_timestamp
        self._reported_waits: list[str] = []
        self._started: datetime | None = None

    async def report_waiting(self, reason: str, message: str) -> None:
        """Report why the capture waits; each reason once, and only the first few."""
        if reason in self._reported_waits or len(self._reported_waits) == _MAX_WAITING_WRITES:
            return
        self._reported_waits.append(reason)
        _log.info("Waiting, %(reason)s: %(detail)s", {"reason": reason, "detail": message})
        with suppress(ClusterError):
            status = self._builder.waiting(reason, message, now=self._clock())
            await self._writer.write(status, until=_loop_time() + _WAIT_TIMEOUT_S)

    async def announce_intent(self, plan: CapturePlan) -> bool:
        """Write planned times and holder; return False if the API server is not available."""
        status = self._builder.running(plan, now=self._clock())
        try:
            await self._writer.write(status, until=_loop_time() + _INTENT_TIMEOUT_S)
        except Unavailable as error:
            _log.warning("Waiting for the API server before the capture starts: %(error)s", {"error": error})
            return False
        return True

    async def report_start(self, plan: CapturePlan) -> None:
        """Report the first request to a profiler."""
        now = self._started = self._clock()
        if self._created is not None:
            self._telemetry.capture_started(delay_s=(now - self._created).total_seconds())
        message = f"capturing {subject(plan)} for {plan.duration_ms / 1000:g} s as session {plan.session}"
        _log.info(message)
        await self._writer.announce("CaptureStarted", message)
        if endangered := plan.endangered:
            pods = enumerated([each.pod for each in endangered])
            message = (
                f"{pods}: a profile of a GPU can end its process while XLA uses command buffers; add {OFF} to XLA_FLAGS"
            )
            await self._writer.announce(SkipReason.COMMAND_BUFFERS_ACTIVE, message, warning=True)

    def report_progress(self, plan: CapturePlan, outcomes: Sequence[TargetOutcome]) -> None:
        """Report the targets that have ended, by `send_updates`; returns at once."""
        stored = sum(outcome.stored for outcome in outcomes)
        within_s = _FIRST_TRACE_S if stored == 1 else UPDATE_INTERVAL_S
        update = partial(self._builder.progressed, outcomes, plan)
        self._writer.put(update, phase=Phase.RUNNING, within_s=within_s)

    async def send_updates(self) -> None:
        """Send the reports of progress, at most one every 5 s, until cancelled."""
        await self._writer.send_updates()

    async def report_retry(self, attempt: int, loss: str) -> None:
        """Report that an attempt was lost with its process and another one follows."""
        message = f"the operator was restarted during attempt {attempt}, {loss}; recording again"
        _log.warning(message)
        await self._writer.announce("CaptureRetried", message, warning=True)

    async def finish(
        self,
        plan: CapturePlan,
        outcomes: Sequence[TargetOutcome],
        verdict: Verdict,
        *,
        diagnosis: CaptureDiagnosis | None = None,
    ) -> None:
        """Write the final status of a capture that had targets, retried until accepted."""
        status = self._builder.finished(plan, outcomes, verdict, diagnosis=diagnosis, now=self._clock())
        await self._writer.write(status)
        for outcome in outcomes:
            size = outcome.bytes or 0 if outcome.stored else 0
            self._telemetry.target_ended(state=str(outcome.state), reason=outcome.reason, stored_bytes=size)
        if (span := skew(outcomes)) is not None:
            self._telemetry.start_skew(span.total_seconds())
        await self._report_verdict(verdict)

    async def refuse(self, reason: str, message: str, *, timeout_s: float | None = None) -> None:
        """Write the final status of a capture that recorded nothing.

        It is retried for `timeout_s`, or until accepted.
        """
        verdict = Verdict(succeeded=False, reason=str(reason), message=message)
        until = None if timeout_s is None else _loop_time() + timeout_s
        await self._writer.write(self._builder.refused(verdict.reason, message, now=self._clock()), until=until)
        await self._report_verdict(verdict)

    async def is_deleted(self) -> bool:
        """Return whether the object was deleted, and not only finished by another process."""
        return await self._writer.is_deleted()

    async def _report_verdict(self, verdict: Verdict) -> None:
        result = "succeeded" if verdict.succeeded else "failed"
        duration_s = (self._clock() - self._started).total_seconds() if self._started else None
        self._telemetry.capture_ended(result=result, reason=verdict.reason, duration_s=duration_s)
        _log.info(
            "The capture %(phase)s, %(reason)s: %(detail)s",
            {"phase": result, "reason": verdict.reason, "detail": verdict.message},
        )
        event = "CaptureSucceeded" if verdict.succeeded else "CaptureFailed"
        message = f"{verdict.reason}: {verdict.message}"
        await self._writer.announce(event, message, warning=not verdict.succeeded)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
