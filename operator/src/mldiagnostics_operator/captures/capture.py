"""The life of one capture, from Pending to its verdict, whatever happens to it and around it on the way."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.failures import StoreFailure
from mldiagnostics.capture.model import Control, Reason
from mldiagnostics.errors import StoreError, StoreUnreachable
from mldiagnostics_api.names import CompleteReason as VerdictReason
from mldiagnostics_api.names import Phase, RefusalReason
from mldiagnostics_api.request import CaptureRefusal
from mldiagnostics_kube.apiserver import ClusterError

from mldiagnostics_operator.captures import recovery
from mldiagnostics_operator.captures.admission import CaptureClaim, WaitReason
from mldiagnostics_operator.captures.engine_run import EngineRun
from mldiagnostics_operator.captures.outcomes import interrupted, undialled
from mldiagnostics_operator.captures.reporter import CaptureReporter
from mldiagnostics_operator.captures.session import Session, SessionTaken
from mldiagnostics_operator.captures.storage import retry_until
from mldiagnostics_operator.captures.takeover import until_abandoned
from mldiagnostics_operator.captures.verdict import cancelled, dry_run, judge
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.plan import CapturePlan
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.planning import Prepared
    from mldiagnostics_operator.captures.services import Services
    from mldiagnostics_operator.captures.verdict import Verdict

_log: Final = logging.getLogger(__name__)

PROGRESS_S: Final = 5.0
_STORE_PATIENCE_S: Final = 60.0
_RECORD_PATIENCE_S: Final = 5.0
_FAULT_PATIENCE_S: Final = 60.0
_WAITS: Final = {
    WaitReason.POD_BUSY: "queued: another capture is running on one of the pods",
    WaitReason.NAMESPACE_QUOTA: "queued: as many captures as a namespace may have are running",
    WaitReason.CLUSTER_QUOTA: "queued: as many captures as the operator may have are running",
}


class StopReason(Enum):
    """Why a life is ended from outside."""

    CANCELLED = auto()
    """Its owner set `spec.cancel`."""
    GONE = auto()
    """The object was deleted, or somebody else finished it."""
    HANDED_OVER = auto()
    """This process does not lead any more."""


class CaptureStage(Enum):
    """How far a life has come, which decides what an end from outside means."""

    FOREIGN = auto()
    """Another process works on it, or did."""
    WAITING = auto()
    """Nothing has been dialled."""
    RECORDING = auto()
    CLOSING = auto()
    """All targets have ended; the verdict is being written."""
    ANSWERED = auto()


class Capture:
    """One capture in this process."""

    def __init__(self, services: Services, connection: MLDiagnosticsConnection) -> None:
        self._services = services
        self._connection = connection
        self._report = CaptureReporter(
            services.cluster, services.telemetry, connection.metadata, connection.status, me=services.me
        )
        self._arrival = services.gate.arrive()
        running = connection.status is not None and connection.status.phase is Phase.RUNNING
        self._stage = CaptureStage.FOREIGN if running else CaptureStage.WAITING
        self._fate: StopReason | None = None
        self._cancel_asked = bool(connection.spec.cancel)
        self._control = Control()
        self._task: asyncio.Task[None] | None = None
        self._recording: EngineRun | None = None
        self._session: Session | None = None

    @property
    def recording(self) -> bool:
        """Whether this process has to bring it to its end."""
        return self._stage in (CaptureStage.RECORDING, CaptureStage.CLOSING)

    @property
    def answered(self) -> bool:
        """Whether the object has its verdict."""
        return self._stage is CaptureStage.ANSWERED

    def end(self, fate: StopReason) -> None:
        """End it early, as far as its stage allows and needs that."""
        self._cancel_asked |= fate is StopReason.CANCELLED
        if self._fate is not None or self._stage in (CaptureStage.CLOSING, CaptureStage.ANSWERED):
            return
        if fate is StopReason.CANCELLED and self._stage is CaptureStage.RECORDING:
            self._control.terminate()
        elif (
            fate is StopReason.GONE
            or self._stage is CaptureStage.WAITING
            or (fate is StopReason.HANDED_OVER and not self.recording)
        ):
            self._fate = fate
            if self._task is not None:
                self._task.cancel()

    async def run(self) -> None:
        """Live to the end. Raises nothing but CancelledError, when the whole process ends."""
        self._task = asyncio.current_task()
        try:
            await self._live()
        except ObjectGone as gone:
            _log.info("Nobody wants the capture any more: %s", gone)
            await self._drop()
        except Exception as fault:  # noqa: BLE001 - whatever it is, the object must not stay unanswered
            _log.exception("The capture failed for a reason that is not its own")
            with suppress(ObjectGone, ClusterError):
                await self._refuse("InternalError", f"{type(fault).__name__}: {fault}", patience_s=_FAULT_PATIENCE_S)

    async def _live(self) -> None:
        """Take the way that the object's status asks for; an end from outside becomes what its fate means."""
        try:
            if self._fate is not None:
                raise asyncio.CancelledError  # noqa: TRY301 - it was ended before it began
            if self._stage is CaptureStage.FOREIGN:
                await self._take_over()
            else:
                await self._begin(attempt=1)
        except asyncio.CancelledError:
            if self._fate is None or self._task is None:
                raise
            self._task.uncancel()
            if self._fate is StopReason.GONE:
                raise ObjectGone("it was deleted, or finished by somebody else") from None
            if self._fate is StopReason.CANCELLED:
                await self._refuse_cancelled()

    async def _begin(self, *, attempt: int, promised: tuple[datetime, datetime] | None = None) -> None:
        """Plan, wait for a turn, capture; `promised` are start and deadline that were announced before."""
        services, meta = self._services, self._connection.metadata
        self._stage = CaptureStage.WAITING
        if self._cancel_asked:  # before, or while another process's attempt was looked at
            await self._refuse_cancelled()
            return
        decided = await services.planner.plan_when_ready(self._connection, attempt, tell=self._report.note)
        while True:
            if isinstance(decided, CaptureRefusal):
                await self._refuse(decided.reason, decided.message)
                return
            if (plan := decided.plan).dry_run or not decided.pods:
                endings = undialled(plan)
                judged = dry_run(endings, len(plan.targets)) if plan.dry_run else judge(endings, needed=plan.needed)
                await self._finish(plan, None, endings, judged)
                return
            claim = CaptureClaim(meta.uid, meta.namespace, self._arrival, decided.pods)
            async with services.gate.passed(claim, self._wait) as waited:
                if waited:
                    decided = await services.planner.plan(self._connection, attempt)
                if not isinstance(decided, CaptureRefusal) and decided.pods and decided.pods <= claim.pods:
                    await self._capture(decided, promised)
                    return

    async def _wait(self, reason: WaitReason) -> None:
        await self._report.note(reason, _WAITS[reason])

    async def _capture(self, prepared: Prepared, promised: tuple[datetime, datetime] | None) -> None:
        """Claim the session, announce what will be done, do it, and say what came of it."""
        session = self._session = self._open(prepared.plan)
        try:
            await retry_until(session.claim, on=StoreUnreachable, until=_at(prepared.plan.deadline))
        except SessionTaken as taken:
            self._session = None
            await self._refuse(RefusalReason.SESSION_EXISTS, str(taken))
            return
        except StoreError as error:
            await self._refuse(StoreFailure.of(error).reason, f"nothing was captured: {error}")
            return
        self._stage = CaptureStage.RECORDING
        prepared = await self._intend(prepared, promised)
        plan = prepared.plan
        recording = self._recording = EngineRun(plan, session, prepared.addresses, self._control)
        await self._record(recording, plan)
        await self._finish(plan, session, recording.endings, self._judge(plan, recording.endings))

    async def _intend(self, prepared: Prepared, promised: tuple[datetime, datetime] | None) -> Prepared:
        """Write the intent, which precedes the first request; while that is impossible the start moves on."""
        while True:
            now = datetime.now(UTC)
            kept = promised if promised is not None and promised[0] > now else None
            prepared = prepared.timed(*kept) if kept else prepared.starting(now)
            if await self._report.intend(prepared.plan):
                return prepared

    async def _record(self, recording: EngineRun, plan: CapturePlan) -> None:
        """Run the engine, and report progress while it runs."""
        deadline_s = (plan.deadline - datetime.now(UTC)).total_seconds()
        work = asyncio.create_task(recording.run(deadline_s=deadline_s, budget=self._services.budget))
        started = asyncio.create_task(self._report.start(plan))
        told = len(recording.endings)
        try:
            while not (await asyncio.wait({work}, timeout=PROGRESS_S))[0]:
                if len(recording.endings) > told:
                    told = len(recording.endings)
                    await self._report.progress(plan, recording.endings)
            work.result()
        finally:
            work.cancel()
            started.cancel()
            await asyncio.wait({work, started})

    async def _take_over(self) -> None:
        """Go on where another process stopped, once it is certain that it did."""
        services, meta = self._services, self._connection.metadata
        status = await until_abandoned(meta, services.cluster, me=services.me, namespace=services.namespace)
        attempt = status.attempt or 1
        decided = await services.planner.plan(self._connection, attempt)
        if isinstance(decided, CaptureRefusal):
            await self._refuse(VerdictReason.INTERRUPTED, f"the operator was restarted; now {decided.message}")
            return
        plan = decided.plan
        session = self._session = self._open(plan)
        try:
            stored = await retry_until(session.stored, on=StoreUnreachable, until=_now() + _STORE_PATIENCE_S)
        except StoreError as error:
            await self._refuse(StoreFailure.of(error).reason, f"the operator was restarted; now {error}")
            return
        start, deadline = status.planned_start_time, status.deadline
        step = recovery.decide(attempt=attempt, planned_start=start, stored=len(stored), now=datetime.now(UTC))
        if self._cancel_asked or isinstance(step, recovery.FinishInterrupted):
            endings = interrupted(plan, stored, Reason.CANCELLED if self._cancel_asked else Reason.INTERRUPTED)
            await self._finish(plan, session, endings, self._judge(plan, endings))
        elif isinstance(step, recovery.Resume):
            await self._begin(attempt=attempt, promised=(start, deadline) if start and deadline else None)
        else:
            await self._report.retry(attempt)
            await self._begin(attempt=step.attempt)

    def _judge(self, plan: CapturePlan, endings: Sequence[TargetOutcome]) -> Verdict:
        return cancelled(endings) if self._cancel_asked else judge(endings, needed=plan.needed)

    async def _finish(
        self, plan: CapturePlan, session: Session | None, endings: Sequence[TargetOutcome], judged: Verdict
    ) -> None:
        """Write the record into the store, then the verdict into the object."""
        self._stage = CaptureStage.CLOSING
        if session is not None:
            until = _now() + _RECORD_PATIENCE_S
            if any(ending.stored for ending in endings):
                until = max(until, _at(plan.deadline))
            try:
                await retry_until(lambda: session.conclude(endings), on=StoreError, until=until)
            except StoreError as error:
                judged = replace(judged, message=f"{judged.message}; the session's record is not up to date: {error}")
        await self._report.finish(plan, endings, judged)
        self._stage = CaptureStage.ANSWERED

    async def _refuse(self, reason: str, message: str, *, patience_s: float | None = None) -> None:
        self._stage = CaptureStage.CLOSING
        await self._report.refuse(reason, message, patience_s=patience_s)
        self._stage = CaptureStage.ANSWERED

    async def _refuse_cancelled(self) -> None:
        await self._refuse(VerdictReason.CANCELLED, "cancelled by spec.cancel before anything was captured")

    async def _drop(self) -> None:
        """Remove what a deleted object's capture left; what somebody else finished is theirs."""
        if not await self._report.deleted():
            return
        if self._recording is not None:
            await self._recording.drop()
        elif self._session is not None:
            await self._session.drop(())

    def _open(self, plan: CapturePlan) -> Session:
        return Session(self._services.storage, self._connection, plan, self._services.versions)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _at(moment: datetime) -> float:
    """Turn a time of day into one of the loop's clock."""
    return _now() + (moment - datetime.now(UTC)).total_seconds()
