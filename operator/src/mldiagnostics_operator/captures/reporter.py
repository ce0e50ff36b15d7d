"""All that a capture says of itself on its way: status, events and metrics, each thing once."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.apiserver import ClusterError, Unavailable

from mldiagnostics_operator.captures.outcomes import skew
from mldiagnostics_operator.captures.status import StatusBuilder
from mldiagnostics_operator.captures.verdict import Verdict
from mldiagnostics_operator.status_writer import StatusWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.plan import CapturePlan
    from mldiagnostics_api.v1alpha1 import ConnectionStatus, ObjectMeta
    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

_NOTES: Final = 3
"""Status writes about waiting, at most: with two intents and the verdict they make six."""
_INTENT_PATIENCE_S: Final = 2.0


class CaptureReporter:
    """The reporting side of one capture. Everything that writes raises Gone when nobody wants to know any more."""

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: OperatorMetrics,
        meta: ObjectMeta,
        status: ConnectionStatus | None,
        *,
        me: str,
    ) -> None:
        holder = status.holder if status is not None else None
        self._scribe = StatusBuilder(status, generation=meta.generation, me=me)
        self._journal = StatusWriter(cluster, telemetry, meta, me=me, holder=holder, has_status=status is not None)
        self._telemetry = telemetry
        self._created = meta.creation_timestamp
        self._noted: list[str] = []
        self._began: datetime | None = None

    async def note(self, reason: str, message: str) -> None:
        """Say why the capture waits; only what is new, and not for ever."""
        if reason in self._noted or len(self._noted) == _NOTES:
            return
        self._noted.append(reason)
        _log.info("Waiting, %s: %s", reason, message)
        with suppress(ClusterError):
            await self._journal.write(self._scribe.waiting(reason, message, now=datetime.now(UTC)), until=_now())

    async def intend(self, plan: CapturePlan) -> bool:
        """Say what is about to be dialled; false if the API server cannot be told now."""
        status = self._scribe.running(plan, now=datetime.now(UTC))
        try:
            await self._journal.write(status, until=_now() + _INTENT_PATIENCE_S)
        except Unavailable as absent:
            _log.warning("The capture waits for the API server: %s", absent)
            return False
        return True

    async def start(self, plan: CapturePlan) -> None:
        """Tell that the first request is made."""
        now = self._began = datetime.now(UTC)
        if self._created is not None:
            self._telemetry.capture_started(delay_s=(now - self._created).total_seconds())
        message = f"capturing {len(plan.targets)} targets for {plan.duration_ms / 1000:g} s as session {plan.session}"
        _log.info(message)
        await self._journal.announce("CaptureStarted", message)

    async def progress(self, plan: CapturePlan, endings: Sequence[TargetOutcome]) -> None:
        """Tell how many targets have ended, if the API server can be told now."""
        with suppress(ClusterError):
            await self._journal.write(self._scribe.progressed(endings, plan), until=_now())

    async def retry(self, attempt: int) -> None:
        """Tell that an attempt was lost with its process and another one follows."""
        message = f"the operator was restarted during attempt {attempt}, nothing of which was stored; recording anew"
        _log.warning(message)
        await self._journal.announce("CaptureRetried", message, warning=True)

    async def finish(self, plan: CapturePlan, endings: Sequence[TargetOutcome], verdict: Verdict) -> None:
        """Close a capture that had targets, however long the API server is away."""
        await self._journal.write(self._scribe.finished(plan, endings, verdict, now=datetime.now(UTC)))
        for ending in endings:
            size = ending.bytes or 0 if ending.stored else 0
            self._telemetry.target_ended(state=str(ending.state), reason=ending.reason, stored_bytes=size)
        if (apart := skew(endings)) is not None:
            self._telemetry.start_skew(apart.total_seconds())
        await self._tell_verdict(verdict)

    async def refuse(self, reason: str, message: str, *, patience_s: float | None = None) -> None:
        """Close a capture that never began."""
        verdict = Verdict(succeeded=False, reason=str(reason), message=message)
        until = None if patience_s is None else _now() + patience_s
        await self._journal.write(self._scribe.refused(verdict.reason, message, now=datetime.now(UTC)), until=until)
        await self._tell_verdict(verdict)

    async def deleted(self) -> bool:
        """Ask whether the object is gone for good, and not only finished by somebody else."""
        return await self._journal.deleted()

    async def _tell_verdict(self, verdict: Verdict) -> None:
        result = "succeeded" if verdict.succeeded else "failed"
        duration_s = (datetime.now(UTC) - self._began).total_seconds() if self._began else None
        self._telemetry.capture_ended(result=result, reason=verdict.reason, duration_s=duration_s)
        _log.info("The capture %s, %s: %s", result, verdict.reason, verdict.message)
        event = "CaptureSucceeded" if verdict.succeeded else "CaptureFailed"
        message = f"{verdict.reason}: {verdict.message}"
        await self._journal.announce(event, message, warning=not verdict.succeeded)


def _now() -> float:
    return asyncio.get_running_loop().time()
