"""The capture of one target: verify, probe, record, read, store."""

import contextlib
import random
import time
from dataclasses import dataclass, field, replace

from mldiagnostics.capture import failures
from mldiagnostics.capture.budget import ByteBudget, Reservation
from mldiagnostics.capture.connectivity import check_connection
from mldiagnostics.capture.deadline import TIMEOUTS, Deadline
from mldiagnostics.capture.grpc_call import CallError
from mldiagnostics.capture.messages import UNWRITABLE_ROOT, decode_response, profile_request
from mldiagnostics.capture.model import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    Recording,
    ServerProbe,
    Target,
    TargetState,
    Verify,
)
from mldiagnostics.capture.profiler_client import ProfileCall, ProfilerClient, Stalled
from mldiagnostics.capture.storage import RetryingStore
from mldiagnostics.capture.trace import summarize
from mldiagnostics.capture.trace_memory import TraceMemory, release
from mldiagnostics.capture.wire import WireError
from mldiagnostics.layout import PROFILE_DIR, TRACE_SUFFIX

_PROBE_TIMEOUT_S = 10.0
_REACH_TIMEOUT_S = 3.0
_FIRST_BUSY_PAUSE_S = 0.2
_LONGEST_BUSY_PAUSE_S = 5.0
_NOTEWORTHY_WAIT_S = 1.0
_CONTINUOUS_ASKS = 2
"""Answers in a row that make a recording continuous: the question of another capture is one for a moment."""


@dataclass(frozen=True, slots=True)
class CaptureContext:
    """Values shared by the targets of a run; `recording` are servers to terminate."""

    options: Options
    store: RetryingStore
    control: Control
    budget: ByteBudget
    tenant: str
    deadline: Deadline
    verify: Verify | None
    recording: set[ProfilerClient] = field(default_factory=set)


class TargetCapture:
    """The capture of one target.

    `server` is the result of its probe; `has_response` is set when the whole response has arrived. Set
    `is_aborted` before you cancel its task, to get the outcome of a cancelled capture.
    """

    def __init__(self, target: Target, shared: CaptureContext) -> None:
        self.target = target
        self.server: ServerProbe | None = None
        self.has_response = False
        self.is_aborted = False
        self._shared = shared

    async def run(self) -> Outcome:
        """Run the capture to completion, at the latest until the deadline.

        Raises:
            TargetFailed: no trace was stored.
        """
        await self._check_address()
        async with contextlib.aclosing(ProfilerClient(self.target)) as profiler:
            self.server = await self._probe(profiler)
            if self.server is ServerProbe.OLD and not (self.target.server_ok or self._shared.options.allow_old_server):
                raise failures.may_deadlock(self.target)
            if self.server is ServerProbe.OLD and self._takes_past:
                raise failures.no_continuous_profiling(self.target)
            return await self._record_when_free(profiler)

    async def _check_address(self) -> None:
        if self._shared.verify is None:
            return
        try:
            problem = await self._shared.deadline.bound(self._shared.verify(self.target))
        except TIMEOUTS:
            problem = "the check did not finish by the deadline; set a later deadline"
        if problem:
            raise failures.wrong_pod(self.target, problem)

    async def _probe(self, profiler: ProfilerClient) -> ServerProbe:
        """Call GetSnapshot: a server that has it never freezes its process."""
        left_s = self._shared.deadline.left_s
        timeout_s = min(_PROBE_TIMEOUT_S, left_s() / 2)  # keep time for `check_connection` if there is no response
        try:
            if await profiler.knows_snapshots(timeout_s=timeout_s):
                return ServerProbe.SNAPSHOTS
            # Any gRPC server may return UNIMPLEMENTED; a profiler has at least Terminate. The id is never used again.
            session = f"{self._shared.options.session}-probe"
            await profiler.terminate(session, timeout_s=timeout_s)
        except CallError as error:
            connectivity = await check_connection(
                self.target.host, self.target.port, timeout_s=left_s(at_most=_REACH_TIMEOUT_S)
            )
            raise failures.probe_failed(
                self.target, code=error.code, details=error.details, connectivity=connectivity
            ) from error
        return ServerProbe.OLD

    async def _record_when_free(self, profiler: ProfilerClient) -> Outcome:
        """Record; retry while the process is busy and there is time to record."""
        pause_s = _FIRST_BUSY_PAUSE_S
        asks = _CONTINUOUS_ASKS
        while not self._shared.control.terminated:
            try:
                return await self._record(profiler)
            except CallError as error:
                needed_s = pause_s + self._shared.options.duration_ms / 1000
                busy = failures.is_busy(code=error.code, details=error.details)
                if self._takes_past and error.code == "NOT_FOUND":
                    raise failures.no_continuous_profiling(self.target) from error
                if busy and asks and await self._is_continuous(profiler):
                    asks -= 1
                    if not asks:
                        raise failures.continuous_profiling_active(self.target) from error
                elif busy:
                    asks = 0
                if not busy or self._shared.deadline.left_s() <= needed_s:
                    raise failures.capture_failed(
                        self.target, code=error.code, details=error.details, root=self._root()
                    ) from error
            with contextlib.suppress(*TIMEOUTS):
                jitter = random.uniform(0.5, 1)  # noqa: S311 - spreads retries, guards nothing
                await Deadline(pause_s * jitter).bound(self._shared.control.wait())
            pause_s = min(2 * pause_s, _LONGEST_BUSY_PAUSE_S)
        raise failures.cancelled()

    @property
    def _takes_past(self) -> bool:
        return self._shared.options.recording is Recording.PAST

    async def _is_continuous(self, profiler: ProfilerClient) -> bool:
        """Return whether the program records continuously, which lasts until it stops.

        A server that does not answer is busy with another session.
        """
        try:
            return await profiler.records_continuously(timeout_s=self._shared.deadline.left_s(at_most=_PROBE_TIMEOUT_S))
        except CallError:
            return False

    async def _record(self, profiler: ProfilerClient) -> Outcome:
        """Record once, wait for memory, read the response and store the trace."""
        shared = self._shared
        timeout_s = shared.deadline.left_s()
        if self._takes_past:
            call = profiler.snapshot(timeout_s=timeout_s)
        else:
            call = profiler.profile(self._request(), timeout_s=timeout_s)
        async with call as recording:
            shared.recording.add(profiler)
            try:
                size = await recording.finished()
            finally:
                shared.recording.discard(profiler)
            cancelled_early = shared.control.terminated
            limit = min(shared.options.max_trace_bytes, shared.budget.largest_bytes)
            if size > limit:
                raise failures.too_large(self.target, size=size, limit=limit)
            reservation, waited_s = await self._reserve(recording, size)
            memory = TraceMemory(size, reservation.release)
            try:
                await self._read(recording, memory.view)
                self.has_response = True
                await self._check_address()
                outcome = await self._store(memory.view, cancelled_early=cancelled_early)
            finally:
                memory.close()
        return outcome if waited_s < _NOTEWORTHY_WAIT_S else _with_wait(outcome, waited_s)

    async def _reserve(self, recording: ProfileCall, size: int) -> tuple[Reservation, float]:
        """Wait for memory; return it and how long that took in seconds."""
        shared = self._shared
        left_s = shared.deadline.left_s()
        try:
            reservation = await shared.budget.reserve(size, shared.tenant, shared.deadline)
        except TIMEOUTS:
            await self._raise_if_failed(recording)
            raise failures.no_memory(self.target, size=size, waited_s=left_s) from None
        return reservation, left_s - shared.deadline.left_s()

    async def _raise_if_failed(self, recording: ProfileCall) -> None:
        """Raise the failure of a call without a response, unless it is its deadline."""
        try:
            await recording.finished()
        except CallError as error:
            if error.code != "DEADLINE_EXCEEDED":
                raise

    async def _read(self, recording: ProfileCall, body: memoryview) -> None:
        """Read the response; a slow one ends early, because it uses memory of the budget."""
        shared = self._shared
        period_s = shared.options.answer_timeout_s
        try:
            await recording.read(body, period_s=period_s)
        except Stalled:
            raise failures.stalled(self.target, period_s=period_s) from None
        except CallError as error:
            if error.code != "DEADLINE_EXCEEDED":
                raise
            raise failures.not_returned(self.target) from None

    async def _store(self, response: memoryview, *, cancelled_early: bool) -> Outcome:
        """Store the trace of the response, or return the one that the process wrote."""
        try:
            decoded = decode_response(response)
            if decoded.trace is None:
                return self._written_by_process(empty=decoded.empty, cancelled_early=cancelled_early)
            summary = summarize(decoded.trace)
        except WireError as error:
            raise failures.bad_response(self.target, str(error)) from None
        if decoded.empty or not summary.has_events:
            raise failures.cancelled() if cancelled_early else failures.empty(self.target)
        try:
            stored = await self._shared.store.store(self.target, decoded.trace, self._shared.deadline)
        finally:
            release(decoded.trace)
        return Outcome(
            self.target,
            *_result(cancelled_early=cancelled_early),
            file=stored.url,
            bytes=stored.bytes,
            sha256=stored.sha256,
            start_ns=summary.start_ns,
            stop_ns=summary.stop_ns,
            server=self.server,
        )

    def _written_by_process(self, *, empty: bool, cancelled_early: bool) -> Outcome:
        """Return the outcome of a response without a trace."""
        if empty:
            raise failures.cancelled() if cancelled_early else failures.empty(self.target)
        root = self._root()
        if root != UNWRITABLE_ROOT:
            file = f"{root}/{self._shared.options.session}/{self.target.stem}{TRACE_SUFFIX}"
            return Outcome(self.target, *_result(cancelled_early=cancelled_early), file=file, server=self.server)
        if self.server is ServerProbe.OLD:
            raise failures.too_old(self.target)
        raise failures.bad_response(self.target, "it has no trace")

    def _request(self) -> bytes:
        options = self._shared.options
        return profile_request(
            self.target,
            options,
            root=self._root(),
            return_trace=options.delivery is not Delivery.WORKLOAD,
            start_ns=options.start_ns if (options.start_ns or 0) > time.time_ns() else None,
        )

    def _root(self) -> str:
        """Return the directory for the server to write to.

        It cannot be written to unless the process is to store its own trace.
        """
        delivery, workload_root = self._shared.options.delivery, self.target.workload_root
        old_with_bucket = self.server is ServerProbe.OLD and (workload_root or "").startswith("gs://")
        if workload_root and (delivery is Delivery.WORKLOAD or (delivery is Delivery.AUTO and old_with_bucket)):
            return f"{workload_root.rstrip('/')}/{PROFILE_DIR}"
        return UNWRITABLE_ROOT


def _result(*, cancelled_early: bool) -> tuple[TargetState, Reason, str]:
    if cancelled_early:
        return (
            TargetState.CANCELLED,
            Reason.CANCELLED,
            "the capture was cancelled; the trace until then is stored",
        )
    return TargetState.CAPTURED, Reason.CAPTURED, ""


def _with_wait(outcome: Outcome, waited_s: float) -> Outcome:
    waited = f"the trace waited {waited_s:.0f} s for memory that other traces used"
    return replace(outcome, message=f"{outcome.message}; {waited}" if outcome.message else waited)
