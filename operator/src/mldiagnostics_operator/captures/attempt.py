"""One attempt of a capture: plan, admission, session, intent, recording, end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.failures import StoreFailure
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.errors import StoreError, StoreUnreachable
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.names import CompleteReason, Phase, RefusalReason
from mldiagnostics_api.runs.sessions import capture_sessions
from mldiagnostics_kube.process.clock import loop_time

from mldiagnostics_operator.captures.engine_run import EngineRun
from mldiagnostics_operator.captures.outcomes import not_captured
from mldiagnostics_operator.captures.remains import Remains
from mldiagnostics_operator.captures.session import Session, SessionTaken
from mldiagnostics_operator.captures.stage import CaptureStage
from mldiagnostics_operator.captures.verdict import dry_run, judge
from mldiagnostics_operator.storage import retry_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mldiagnostics.capture.model import Reason
    from mldiagnostics_api.captures.plan import CapturePlan
    from mldiagnostics_api.v1alpha1 import ConnectionStatus, MLDiagnosticsConnection

    from mldiagnostics_operator.captures.closing import CaptureCloser
    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.planning import Prepared
    from mldiagnostics_operator.captures.queue.capture_queue import QueueEntry
    from mldiagnostics_operator.captures.services import Services
    from mldiagnostics_operator.fair_slots import Slot

_STORE_TIMEOUT_S: Final = 60.0
_DROP_TIMEOUT_S: Final = 60.0


class CaptureAttempt:
    """One attempt, under a session of its own.

    Args:
        services: The parts that all captures share.
        connection: The object, as it was when the capture started.
        closer: Closes the capture; has its reporter and its state.
        entry: The capture's entry in the queue.
        number: Number of the attempt, from 1.
        planned_times: Start and deadline, if an earlier process has announced them for this attempt.
    """

    def __init__(
        self,
        services: Services,
        connection: MLDiagnosticsConnection,
        closer: CaptureCloser,
        entry: QueueEntry,
        *,
        number: int = 1,
        planned_times: tuple[datetime, datetime] | None = None,
    ) -> None:
        self._services = services
        self._connection = connection
        self._reporter, self._state = closer.reporter, closer.state
        self._closer = closer
        self._entry = entry
        self._number = number
        self._planned_times = planned_times
        self._session: Session | None = None
        self._engine_run: EngineRun | None = None
        self._noted: CapturePlan | None = None
        """The plan whose session the runs of its targets show."""

    async def run(self) -> None:
        """Run the attempt to the final status of the capture."""
        self._state.stage = CaptureStage.WAITING
        if self._state.cancel_requested:  # before, or while another process's attempt was read
            await self._closer.refuse_cancelled()
            return
        async with self._entry.plan_slot() as slot:
            await self._plan_and_capture(slot)

    async def _plan_and_capture(self, slot: Slot) -> None:
        planner, entry = self._services.planner, self._entry
        decision = await self._try_planning() or await planner.plan_when_ready(
            self._connection, self._number, slot=slot, report=entry.report, on_slot=entry.report_plan_slot
        )
        while True:
            if isinstance(decision, CaptureRefusal):
                await self._closer.refuse(decision.reason, decision.message)
                return
            if decision.plan.dry_run or not decision.pods:
                await self._finish_without_capture(decision.plan)
                return
            pods = decision.pods
            async with entry.admitted(pods) as waited:
                if waited:
                    decision = await planner.plan(self._connection, self._number)
                if not isinstance(decision, CaptureRefusal) and decision.pods and decision.pods <= pods:
                    await self._capture(decision)
                    return

    async def find_remains(self, status: ConnectionStatus) -> tuple[CapturePlan, Remains] | None:
        """Return plan and remains of an attempt that a process left with this status.

        Returns None if the capture was refused instead.
        """
        decision = await self._try_planning() or await self._services.planner.plan(self._connection, self._number)
        if isinstance(decision, CaptureRefusal):
            message = f"the operator was restarted; now {decision.message}"
            await self._closer.refuse(CompleteReason.INTERRUPTED, message)
            return None
        session = self._session = self._open_session(decision.plan)
        until = asyncio.get_running_loop().time() + _STORE_TIMEOUT_S
        try:
            stored = await retry_until(session.stored, on=StoreUnreachable, until=until)
        except StoreError as error:
            await self._closer.refuse(StoreFailure.of(error).reason, f"the operator was restarted; now {error}")
            return None
        return decision.plan, Remains(stored=stored or (), has_record=stored is not None, status=status)

    async def finish_interrupted(self, plan: CapturePlan, remains: Remains, reason: Reason) -> None:
        """End an attempt of another process; targets without a trace get the reason."""
        outcomes = remains.outcomes(plan, reason)
        await self._finish(plan, self._session, outcomes)

    async def drop(self) -> None:
        """Delete the files of this attempt."""
        if self._noted is not None:
            self._note_session(self._noted, "Deleted", stopped=self._services.clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(_DROP_TIMEOUT_S):
                if self._engine_run is not None:
                    await self._engine_run.drop()
                elif self._session is not None:
                    await self._session.drop(())

    async def _try_planning(self) -> CaptureRefusal | None:
        plan = partial(self._services.planner.plan, self._connection, self._number)
        return await self._services.queue.crash_guard.refuse(self._connection.metadata, plan)

    async def _finish_without_capture(self, plan: CapturePlan) -> None:
        outcomes = not_captured(plan)
        if plan.dry_run:
            verdict = dry_run(len(plan.targets), plan.total)
        else:
            verdict = judge(outcomes, needed=plan.needed, uncounted=plan.uncounted)
        await self._closer.finish(plan, None, outcomes, verdict)

    async def _capture(self, prepared: Prepared) -> None:
        """Claim the session, announce the intent, record the targets and finish."""
        session = self._session = self._open_session(prepared.plan)
        until = loop_time(prepared.plan.deadline, self._services.clock)
        try:
            await retry_until(partial(self._claim, session, prepared.plan), on=StoreUnreachable, until=until)
        except SessionTaken as taken:
            await self._closer.refuse(RefusalReason.SESSION_EXISTS, str(taken))
            return
        except StoreError as error:
            await self._closer.refuse(StoreFailure.of(error).reason, f"nothing was captured: {error}")
            return
        self._state.stage = CaptureStage.RECORDING
        prepared = await self._announce_intent(prepared)
        plan = prepared.plan
        engine_run = self._engine_run = EngineRun(
            plan,
            session,
            prepared.addresses,
            self._state.control,
            tenant=self._connection.metadata.namespace or "",
            on_outcome=lambda: self._reporter.report_progress(plan, engine_run.outcomes),
        )
        self._note_session(plan, Phase.RUNNING)
        await self._record(engine_run, plan)
        await self._finish(plan, session, engine_run.outcomes)

    async def _claim(self, session: Session, plan: CapturePlan) -> None:
        await self._services.share.check(self._connection.metadata.namespace, plan.directories)
        await session.claim()

    async def _finish(self, plan: CapturePlan, session: Session | None, outcomes: Sequence[TargetOutcome]) -> None:
        verdict = self._closer.judge(plan, outcomes)
        await self._closer.finish(plan, session, outcomes, verdict)
        self._note_session(plan, verdict.reason, stopped=self._services.clock())

    def _note_session(self, plan: CapturePlan, state: str, *, stopped: datetime | None = None) -> None:
        """Note the session in the runs of the capture's targets."""
        self._noted = plan
        meta = self._connection.metadata
        namespace = self._connection.spec.trigger_capture.pod_namespace or meta.namespace
        sessions = capture_sessions(plan, meta.name, str(state), stopped=stopped)
        self._services.exchange.note_sessions(namespace, sessions)

    async def _announce_intent(self, prepared: Prepared) -> Prepared:
        """Write the intent before the first request; wait until it is written."""
        while True:
            now, announced = self._services.clock(), self._planned_times
            if announced is not None and announced[0] > now:
                prepared = prepared.timed(*announced)
            else:
                prepared = prepared.starting(now)
            if await self._reporter.announce_intent(prepared.plan):
                return prepared

    async def _record(self, engine_run: EngineRun, plan: CapturePlan) -> None:
        """Run the engine, and report progress while it runs."""
        deadline_s = (plan.deadline - self._services.clock()).total_seconds()
        work = asyncio.create_task(engine_run.run(deadline_s=deadline_s, budget=self._services.budget))
        started = asyncio.create_task(self._reporter.report_start(plan))
        updates = asyncio.create_task(self._reporter.send_updates())
        try:
            await asyncio.wait({work, updates}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                updates.result()  # raises ObjectGone: the capture ends
            work.result()
        finally:
            await cancel_all((work, started, updates))

    def _open_session(self, plan: CapturePlan) -> Session:
        return Session(self._services.storage, self._connection, plan, self._services.versions)
