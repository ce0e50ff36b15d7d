"""The end of a capture: the record in the store, then the final status."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import StoreError
from mldiagnostics_api.names import CompleteReason
from mldiagnostics_kube.clock import loop_time

from mldiagnostics_operator.captures.session import SessionTaken
from mldiagnostics_operator.captures.stage import CaptureStage
from mldiagnostics_operator.captures.verdict import cancelled, judge
from mldiagnostics_operator.storage import retry_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.plan import CapturePlan
    from mldiagnostics_kube.clock import Clock

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.reporter import CaptureReporter
    from mldiagnostics_operator.captures.session import Session
    from mldiagnostics_operator.captures.stage import CaptureState
    from mldiagnostics_operator.captures.verdict import Verdict

_RECORD_TIMEOUT_S: Final = 5.0


class CaptureCloser:
    """Closes one capture and keeps its stage current."""

    def __init__(self, reporter: CaptureReporter, state: CaptureState, clock: Clock) -> None:
        self._reporter = reporter
        self._state = state
        self._clock = clock

    def judge(self, plan: CapturePlan, outcomes: Sequence[TargetOutcome]) -> Verdict:
        """Return the verdict on the targets' outcomes; a cancelled capture has failed."""
        return cancelled(outcomes) if self._state.cancel_requested else judge(outcomes, needed=plan.needed)

    async def finish(
        self, plan: CapturePlan, session: Session | None, outcomes: Sequence[TargetOutcome], verdict: Verdict
    ) -> None:
        """Write the record of the session, if there is one, then the final status.

        The record may be tried until the deadline if there are traces, else for a few seconds.
        """
        self._state.stage = CaptureStage.CLOSING
        if session is not None:
            until = asyncio.get_running_loop().time() + _RECORD_TIMEOUT_S
            if any(outcome.stored for outcome in outcomes):
                until = max(until, loop_time(plan.deadline, self._clock))
            try:
                await retry_until(lambda: session.conclude(outcomes), on=StoreError, until=until)
            except (StoreError, SessionTaken) as error:
                message = f"{verdict.message}; the session's record is not up to date: {error}"
                verdict = replace(verdict, message=message)
        await self._reporter.finish(plan, outcomes, verdict)
        self._state.stage = CaptureStage.FINISHED

    async def refuse(self, reason: str, message: str, *, timeout_s: float | None = None) -> None:
        """Close a capture that recorded nothing; without a timeout, retry until accepted."""
        self._state.stage = CaptureStage.CLOSING
        await self._reporter.refuse(reason, message, timeout_s=timeout_s)
        self._state.stage = CaptureStage.FINISHED

    async def refuse_cancelled(self) -> None:
        """Close a capture that was cancelled before it recorded anything."""
        await self.refuse(CompleteReason.CANCELLED, "cancelled by spec.cancel before anything was captured")
