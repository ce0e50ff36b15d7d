"""The course of one target: verify its address, probe the server, record, read the answer, store the trace."""

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field

from mldiagnostics.capture import failures
from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.connectivity import reach
from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.messages import HARMLESS_ROOT, profile_request, read_answer
from mldiagnostics.capture.model import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    ServerProbe,
    Target,
    TargetState,
    Verify,
)
from mldiagnostics.capture.profiler_client import CallError, ProfileCall, ProfilerClient
from mldiagnostics.capture.storage import RetryingStore
from mldiagnostics.capture.trace import TraceSummary, summarize
from mldiagnostics.capture.wire import WireError
from mldiagnostics.layout import PROFILE_DIR, TRACE_SUFFIX

_PROBE_TIMEOUT_S = 10.0
_REACH_TIMEOUT_S = 3.0
_FIRST_BUSY_PAUSE_S = 0.2
_LONGEST_BUSY_PAUSE_S = 5.0
_QUICK_WALK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CaptureContext:
    """What the targets of one run have in common; `recording` are the servers to call if the run is terminated."""

    options: Options
    storing: RetryingStore
    control: Control
    budget: ByteBudget
    deadline: Deadline
    verify: Verify | None
    recording: set[ProfilerClient] = field(default_factory=set)


class TargetCapture:
    """One target's way through a run; `server` is what its probe found out."""

    def __init__(self, target: Target, shared: CaptureContext) -> None:
        self._target = target
        self._shared = shared
        self.server: ServerProbe | None = None

    async def run(self) -> Outcome:
        """Take the course to its end, at the latest at the deadline. Raises `Verdict`."""
        await self._check_address()
        dialled = ProfilerClient(self._target, max_trace_bytes=self._shared.options.max_trace_bytes)
        async with contextlib.aclosing(dialled) as profiler:
            self.server = await self._probe(profiler)
            if self.server is ServerProbe.OLD and not (self._target.server_ok or self._shared.options.allow_old_server):
                raise failures.may_deadlock(self._target)
            return await self._record_when_free(profiler)

    async def _check_address(self) -> None:
        if self._shared.verify is None:
            return
        try:
            complaint = await self._shared.deadline.bound(self._shared.verify(self._target))
        except (asyncio.TimeoutError, TimeoutError):
            complaint = "that could not be checked by the deadline"
        if complaint:
            raise failures.wrong_pod(self._target, complaint)

    async def _probe(self, profiler: ProfilerClient) -> ServerProbe:
        """Ask for a snapshot: who knows the word never freezes its process."""
        left_s = self._shared.deadline.left_s
        timeout_s = min(_PROBE_TIMEOUT_S, left_s() / 2)  # and time to look why, if nobody answers
        try:
            if await profiler.knows_snapshots(timeout_s=timeout_s):
                return ServerProbe.SNAPSHOTS
            # Any gRPC server says "unimplemented"; a profiler knows at least Terminate. The id is never used again.
            session = f"{self._shared.options.session}-probe"
            await profiler.terminate(session, timeout_s=timeout_s)
        except CallError as error:
            came = await reach(self._target.host, self._target.port, timeout_s=left_s(at_most=_REACH_TIMEOUT_S))
            raise failures.of_probe(self._target, code=error.code, details=error.details, reach=came) from error
        return ServerProbe.OLD

    async def _record_when_free(self, profiler: ProfilerClient) -> Outcome:
        """Record, waiting for another session of the process to end while there is time for ours after it."""
        pause_s = _FIRST_BUSY_PAUSE_S
        while not self._shared.control.terminated:
            try:
                return await self._record(profiler)
            except CallError as error:
                enough_s = pause_s + self._shared.options.duration_ms / 1000
                busy = failures.is_busy(code=error.code, details=error.details)
                if not busy or self._shared.deadline.left_s() <= enough_s:
                    raise failures.of_capture(
                        self._target, code=error.code, details=error.details, root=self._root()
                    ) from error
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                spread = random.uniform(0.5, 1)  # noqa: S311 - spreads retries, guards nothing
                await asyncio.wait_for(self._shared.control.wait(), pause_s * spread)
            pause_s = min(2 * pause_s, _LONGEST_BUSY_PAUSE_S)
        raise failures.cancelled()

    async def _record(self, profiler: ProfilerClient) -> Outcome:
        """Record once, wait for room in memory, then read the answer. Raises `CallError` and `Verdict`."""
        shared = self._shared
        async with profiler.profile(self._request(), timeout_s=shared.deadline.left_s()) as recording:
            shared.recording.add(profiler)
            try:
                await recording.finished()
            finally:
                shared.recording.discard(profiler)
            cut_short = shared.control.terminated
            try:
                held = await shared.budget.take(shared.deadline)
            except (asyncio.TimeoutError, TimeoutError):
                await recording.finished()  # if the call has failed meanwhile, that is the reason
                raise shared.storing.never_read(self._target) from None
            try:
                data = await self._read(recording)
                shared.budget.settle(held, len(data))
                await self._check_address()
                return await self._keep(data, cut_short=cut_short)
            finally:
                shared.budget.give_back(held)

    async def _read(self, recording: ProfileCall) -> bytes:
        """Read the answer; one that stalls must not keep the others from their share of memory."""
        try:
            return await self._shared.deadline.bound(recording.answer(), at_most=self._shared.options.answer_timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            raise failures.stalled(self._target) from None

    async def _keep(self, data: bytes, *, cut_short: bool) -> Outcome:
        """Store the trace that the answer holds, or account for the one that the process wrote itself."""
        try:
            answer = read_answer(data)
            if answer.trace is None:
                return self._written_there(empty=answer.empty, cut_short=cut_short)
            summary = await self._summarize(answer.trace)
        except WireError as error:
            raise failures.bad_answer(self._target, str(error)) from error
        if answer.empty or not summary.has_events:
            raise failures.cancelled() if cut_short else failures.empty(self._target)
        stored = await self._shared.storing.store(self._target, answer.trace, self._shared.deadline)
        return Outcome(
            self._target,
            *_ending(cut_short=cut_short),
            file=stored.url,
            bytes=stored.bytes,
            sha256=stored.sha256,
            start_ns=summary.start_ns,
            stop_ns=summary.stop_ns,
            server=self.server,
        )

    def _written_there(self, *, empty: bool, cut_short: bool) -> Outcome:
        """Account for an answer without a trace: it lies where the server was told to write, or nowhere."""
        if empty:
            raise failures.cancelled() if cut_short else failures.empty(self._target)
        root = self._root()
        if root != HARMLESS_ROOT:
            file = f"{root}/{self._shared.options.session}/{self._target.stem}{TRACE_SUFFIX}"
            return Outcome(self._target, *_ending(cut_short=cut_short), file=file, server=self.server)
        if self.server is ServerProbe.OLD:
            raise failures.too_old(self._target)
        raise failures.bad_answer(self._target, "there is none in it")

    async def _summarize(self, trace: memoryview) -> TraceSummary:
        """Walk the trace; a big one aside, since what a hostile process sends may take long."""
        if len(trace) <= _QUICK_WALK_BYTES:
            return summarize(trace)
        return await self._shared.deadline.bound(asyncio.to_thread(summarize, trace))

    def _request(self) -> bytes:
        options = self._shared.options
        return profile_request(
            self._target,
            options,
            root=self._root(),
            answer_with_trace=options.delivery is not Delivery.WORKLOAD,
            start_ns=options.start_ns if (options.start_ns or 0) > time.time_ns() else None,
        )

    def _root(self) -> str:
        """Where the server is told to write; harmless unless the process itself is to store its trace."""
        delivery, own = self._shared.options.delivery, self._target.workload_root
        old_with_bucket = self.server is ServerProbe.OLD and (own or "").startswith("gs://")
        if own and (delivery is Delivery.WORKLOAD or (delivery is Delivery.AUTO and old_with_bucket)):
            return f"{own.rstrip('/')}/{PROFILE_DIR}"
        return HARMLESS_ROOT


def _ending(*, cut_short: bool) -> tuple[TargetState, Reason, str]:
    if cut_short:
        return (
            TargetState.CANCELLED,
            Reason.CANCELLED,
            "the capture was cancelled; what was recorded until then is stored",
        )
    return TargetState.CAPTURED, Reason.CAPTURED, ""
