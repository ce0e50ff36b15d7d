"""All targets of one capture at once: a stream of outcomes, one per target, each as soon as it is known."""

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncGenerator, Sequence

from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.failures import TargetFailed
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
from mldiagnostics.capture.profiler_client import CallError, ProfilerClient
from mldiagnostics.capture.storage import RetryingStore
from mldiagnostics.capture.target_capture import CaptureContext, TargetCapture
from mldiagnostics.errors import ConfigurationError

_TERMINATE_TIMEOUT_S = 10.0
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
) -> AsyncGenerator[Outcome, None]:
    """Capture every target and yield its outcome; use it under `contextlib.aclosing`, closing early aborts all.

    `budget` is to be shared by all runs of a process. Raises `ConfigurationError` before anything is dialled; whatever
    happens to a target later is its outcome, at the latest at the deadline.
    """
    _check(targets, options)
    _allow_descriptors(2 * len(targets))
    shared = CaptureContext(
        options=options,
        storing=RetryingStore(sink),
        control=control or Control(),
        budget=budget or ByteBudget(),
        deadline=Deadline(options.deadline_s),
        verify=verify,
    )
    tasks = [asyncio.create_task(_one(target, shared)) for target in targets]
    terminator = asyncio.create_task(_terminate_when_asked(shared))
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in (*tasks, terminator):
            task.cancel()
        await asyncio.gather(*tasks, terminator, return_exceptions=True)


async def _one(target: Target, shared: CaptureContext) -> Outcome:
    course = TargetCapture(target, shared)
    try:
        return await course.run()
    except TargetFailed as verdict:
        return verdict.outcome(target, course.server)
    except Exception as fault:  # noqa: BLE001 - one target's fault must not cost the others their outcomes
        _log.exception("capture of %s at %s", target.stem, target.address)
        message = f"an unexpected fault, please report it: {type(fault).__name__}: {fault}"
        return Outcome(target, TargetState.FAILED, Reason.UNEXPECTED, message, server=course.server)


async def _terminate_when_asked(shared: CaptureContext) -> None:
    await shared.control.wait()

    async def terminate(profiler: ProfilerClient) -> None:
        with contextlib.suppress(CallError):  # its capture ends by itself, or at the deadline
            await profiler.terminate(shared.options.session, timeout_s=_TERMINATE_TIMEOUT_S)

    await asyncio.gather(*(terminate(profiler) for profiler in shared.recording))


def _check(targets: Sequence[Target], options: Options) -> None:
    if options.delivery is Delivery.WORKLOAD:
        for target in targets:
            if not target.workload_root:
                raise ConfigurationError(f"{target.stem} is to write its own trace and was not told where")


def _allow_descriptors(wanted: int) -> None:
    """Raise the soft limit on open files as far as the hard one allows: each target is a socket."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += _SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
