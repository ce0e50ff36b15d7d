"""The end of a capture: the record in the store, then the final status."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import StoreError
from mldiagnostics_api.names import CompleteReason
from mldiagnostics_kube.process.clock import loop_time

from mldiagnostics_operator.captures.session import SessionTaken
from mldiagnostics_operator.captures.stage import CaptureStage
from mldiagnostics_operator.captures.verdict import cancelled, judge, pending_diagnosis
from mldiagnostics_operator.storage import retry_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.captures.plan import CapturePlan
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.reporter import CaptureReporter
    from mldiagnostics_operator.captures.session import Session
    from mldiagnostics_operator.captures.stage import CaptureState
    from mldiagnostics_operator.captures.verdict import Verdict

_RECORD_TIMEOUT_S: Final = 5.0


class CaptureCloser:
    """Closes one capture and keeps its stage current; owns its reporter and its state."""

    def __init__(self, reporter: CaptureReporter, state: CaptureState, clock: Clock, *, diagnoses: bool) -> None:
        self.reporter: Final = reporter
        self.state: Final = state
        self._diagnoses = diagnoses
        self._clock = clock

    def judge(self, plan: CapturePlan, outcomes: Sequence[TargetOutcome]) -> Verdict:
        """Return the verdict on the targets' outcomes; a cancelled capture has failed."""
        if self.state.cancel_requested:
            return cancelled(outcomes, plan.total)
        return judge(outcomes, needed=plan.needed, uncounted=plan.uncounted)

    async def finish(
        self, plan: CapturePlan, session: Session | None, outcomes: Sequence[TargetOutcome], verdict: Verdict
    ) -> None:
        """Write the record of the session, if there is one, then the final status.

        The record may be tried until the deadline if there are traces, else for a few seconds.
        """
        self.state.stage = CaptureStage.CLOSING
        if session is not None:
            until = asyncio.get_running_loop().time() + _RECORD_TIMEOUT_S
            if any(outcome.stored for outcome in outcomes):
                until = max(until, loop_time(plan.deadline, self._clock))
            try:
                await retry_until(lambda: session.conclude(outcomes), on=StoreError, until=until)
            except (StoreError, SessionTaken) as error:
                message = f"{verdict.message}; the session's record is not up to date: {error}"
                verdict = replace(verdict, message=message)
        diagnosis = pending_diagnosis(plan, outcomes) if self._diagnoses else None
        await self.reporter.finish(plan, outcomes, verdict, diagnosis=diagnosis)
        self.state.stage = CaptureStage.FINISHED

    async def refuse(self, reason: str, message: str, *, timeout_s: float | None = None) -> None:
        """Close a capture that recorded nothing; without a timeout, retry until accepted."""
        self.state.stage = CaptureStage.CLOSING
        await self.reporter.refuse(reason, message, timeout_s=timeout_s)
        self.state.stage = CaptureStage.FINISHED

    async def refuse_cancelled(self) -> None:
        """Close a capture that was cancelled before it recorded anything."""
        await self.refuse(CompleteReason.CANCELLED, "cancelled by spec.cancel before anything was captured")
