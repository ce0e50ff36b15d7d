"""`run`: capture all targets in parallel and yield their outcomes."""

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncGenerator, Mapping, Sequence

from mldiagnostics.capture import failures
from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.failures import TargetFailed
from mldiagnostics.capture.grpc_call import CallError
from mldiagnostics.capture.model import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    Target,
    TargetState,
    TraceSink,
    Verify,
)
from mldiagnostics.capture.profiler_client import ProfilerClient
from mldiagnostics.capture.storage import RetryingStore
from mldiagnostics.capture.target_capture import CaptureContext, TargetCapture
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.errors import ConfigurationError

_SPARE_DESCRIPTORS = 256

_log = logging.getLogger(__name__)


async def run(
    targets: Sequence[Target],
    options: Options,
    *,
    sink: TraceSink,
    control: Control | None = None,
    verify: Verify | None = None,
    budget: ByteBudget | None = None,
    tenant: str = "",
) -> AsyncGenerator[Outcome, None]:
    """Capture every target in parallel; yield each outcome as soon as it is known.

    Use it with `contextlib.aclosing`: closing early aborts all targets. Failures of a target do not raise, they are its
    outcome, at the latest at the deadline.

    Args:
        targets: profiler servers, each once.
        options: duration, deadline and tracers of the capture.
        sink: stores one trace.
        control: terminates the recording on request.
        verify: checks the address of a target.
        budget: memory budget, to be shared by all runs of a process.
        tenant: the user of the budget, such as a namespace; tenants share it fairly.

    Raises:
        ConfigurationError: a target has no `workload_root` with delivery Workload. No target is contacted.
    """
    _check(targets, options)
    _allow_descriptors(2 * len(targets))
    shared = CaptureContext(
        options=options,
        store=RetryingStore(sink),
        control=control or Control(),
        budget=budget or ByteBudget(options.max_trace_bytes),
        tenant=tenant,
        deadline=Deadline(options.deadline_s),
        verify=verify,
    )
    captures = [TargetCapture(target, shared) for target in targets]
    tasks = [asyncio.create_task(_one(target_capture)) for target_capture in captures]
    terminator = asyncio.create_task(_terminate_on_request(shared, dict(zip(captures, tasks, strict=True))))
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        await cancel_all([*tasks, terminator])


async def _one(capture: TargetCapture) -> Outcome:
    """Return the outcome of a target, also if the terminator cancels it."""
    target = capture.target
    try:
        return await capture.run()
    except TargetFailed as failure:
        return failure.outcome(target, capture.server)
    except asyncio.CancelledError:
        if not capture.is_aborted:
            raise
        return failures.cancelled().outcome(target, capture.server)
    except Exception as error:  # noqa: BLE001 - an error of one target must not end the others
        _log.exception("capture failed: target=%s address=%s", target.stem, target.address)
        message = (
            f"{target.address}: unexpected error {type(error).__name__}: {error}; see the log and report it as a bug"
        )
        return Outcome(target, TargetState.FAILED, Reason.UNEXPECTED, message, server=capture.server)


async def _terminate_on_request(shared: CaptureContext, tasks: Mapping[TargetCapture, asyncio.Task[Outcome]]) -> None:
    """Terminate all recordings on request, and abort those that do not respond."""
    await shared.control.wait()
    timeout_s = shared.options.cancel_timeout_s

    async def terminate(profiler: ProfilerClient) -> None:
        with contextlib.suppress(CallError):  # the capture ends by itself, or is aborted
            await profiler.terminate(shared.options.session, timeout_s=timeout_s)

    await asyncio.gather(asyncio.sleep(timeout_s), *(terminate(profiler) for profiler in shared.recording))
    for capture, task in tasks.items():
        if not capture.has_response:
            capture.is_aborted = True
            task.cancel()


def _check(targets: Sequence[Target], options: Options) -> None:
    if options.delivery is Delivery.WORKLOAD:
        for target in targets:
            if not target.workload_root:
                raise ConfigurationError(f"{target.stem}: `workload_root` is missing; delivery Workload needs it")


def _allow_descriptors(needed: int) -> None:
    """Raise the soft limit on open files: each target needs sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed += _SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
