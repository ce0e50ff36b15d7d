"""The run that a program holds; no method raises into the program."""

from __future__ import annotations

import os
import threading
import time
from copy import copy
from typing import TYPE_CHECKING

from mldiagnostics.clock import steady
from mldiagnostics.diagnostics import warn_ignored, warn_once
from mldiagnostics.lifecycle import current_run
from mldiagnostics.lifecycle.outcome import EXIT_CODE_UNKNOWN, Phase, RunOutcome, judge, terminating
from mldiagnostics.pipeline.recorder import CloseSummary
from mldiagnostics.run import closing, ownership, takeover
from mldiagnostics.run.closing import CLOSE_TIMEOUT_S
from mldiagnostics.run.parts import RunParts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import NoReturn

    from mldiagnostics.configs.kinds import RunPhase


class MLRun(RunParts):
    """A run, created by `machinelearning_run`; as a context manager it closes itself.

    Attributes:
        storage: Root of all runs.
        directory: Directory of this run, below the root.
        sinks: URLs of the run's sinks.
        recorder: Goodput recorder of the run, for example `with run.recorder.event("EVAL"):`. Start, steps and
            successful end are recorded by rank 0 automatically; by its subprocesses and forked children, steps only.
        origin: Identity of this process in its records.
        recording: Pipeline of the run's records.
        cloud: Google Cloud project and region.

    Example:
        >>> with machinelearning_run("pretrain") as run:  # doctest: +SKIP
        ...     run.configs.optimizer = {"name": "adam", "lr": 3e-4}
        ...     for batch in batches:
        ...         run.step()
    """

    def step(self, number: int | None = None, *extra: NoReturn, **unknown: NoReturn) -> None:
        """Record that a training step starts.

        Goodput is computed from the steps: a step lasts until the next one starts, and a number below the last one
        means lost progress. The same number again is the same step.

        Args:
            number: Number of the step. Default: one more than the last, starting at 0.

        Example:
            >>> for batch in batches:  # doctest: +SKIP
            ...     run.step()
        """
        if extra or unknown:
            warn_ignored("run.step", MLRun.step, extra, unknown)
        state = self._state
        last = state.step
        if type(number) is int:
            step = number
        elif number is None:
            step = 0 if last is None else last + 1
        elif (whole := closing.whole_step(number)) is not None:
            step = whole
        else:
            return
        if step != last:
            state.step = step
            now = steady()
            state.starts.note((now, step))
            if self._records_steps:
                self.recorder.start_step(step, now)
        for callback in self._step_callbacks:
            try:  # not in a function: this is called with every step
                callback(step)
            except Exception as error:  # noqa: BLE001, PERF203 - the training continues
                closing.warn_failed("on-step", callback, error)

    def on_step(self, callback: Callable[[int], object]) -> None:
        """Call `callback` with the number of every step, when it starts.

        Args:
            callback: Called on the thread that calls `step()`, so it should return at once.
        """
        self._step_callbacks.append(callback)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the run closes, while records are still accepted.

        Args:
            callback: Called without arguments; the last one registered is called first.
        """
        self._close_callbacks.append(callback)

    def publish(self, section: str, value: Mapping[str, object]) -> None:
        """Add a section to run.json, in the leading process; the last value counts.

        Args:
            section: Key in run.json.
            value: Content that JSON can represent.
        """
        self._state.publish(section, value)

    def warn_once(self, key: str, message: str) -> None:
        """Log a warning the first time that `key` occurs, and count every occurrence."""
        warn_once(key, message)

    def close(self, phase: RunPhase | str | None = None, *, timeout_s: float = CLOSE_TIMEOUT_S) -> CloseSummary:
        """End the run: write all records and the final phase.

        A second call changes nothing. In a forked child only the child's records end; the phase belongs to the parent.

        Args:
            phase: Final phase, as a member or its value. Default: Completed, or Failed if an exception is in flight or
                has ended a thread.
            timeout_s: Seconds that the call may take, about; records that are not written by then are dropped and
                counted.

        Returns:
            Numbers of delivered, dropped and spooled records.

        Example:
            >>> run.close(RunPhase.PHASE_FAILED)  # doctest: +SKIP
        """
        if os.getpid() != self._pid:
            return self.recording.close(closing.timeout_seconds(timeout_s))
        with self._closing:
            if self._closed is None:
                self._exit_hooks.note_in_flight()
                return self._end(closing.final_phase(phase), closing.timeout_seconds(timeout_s))
            return self._closed

    def __enter__(self) -> MLRun:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, GeneratorExit) and not self.closed:
            self._exit_hooks.note_uncaught(kind, error)
        self.close()

    def __copy__(self) -> MLRun:
        return self

    def __deepcopy__(self, _: object) -> MLRun:  # with a configuration that holds it, say
        return self

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:  # type: ignore[explicit-override]
        return self._unpickle, (self.display_name,)

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        return f"<MLRun {self.display_name!r} {self.run_phase.value} {self.directory}>"

    def start(self, requested_at: float) -> None:
        """Make this the run of the process; called once, by `start_run`.

        Args:
            requested_at: Time of the call of `machinelearning_run`, in Unix seconds.
        """
        current_run.enter(self)
        takeover.watch(self)
        self._exit_hooks.watch_sigterm()
        if self._records_job:
            self.recorder.record_job_start_time(requested_at)
        self._state.start(requested_at)
        if self._reporter is not None:
            self._reporter.start(self._state.view)

    def lead_in_child(self, parent: str) -> None:
        """Lead the run in this forked child, a daemon whose parent has ended.

        Args:
            parent: Incarnation of the parent.
        """
        from mldiagnostics.pipeline import forked_exit  # noqa: PLC0415 - only in a daemon
        from mldiagnostics.run.exit_hooks import process_exit_hooks  # noqa: PLC0415 - the same

        self._closing = threading.RLock()  # a thread of the parent may hold the old one
        with self._closing:
            self.origin = self.recording.origin
            self._exit_hooks = process_exit_hooks()
            state = copy(self._state)
            state.lead_in_child(self.origin, parent)
            self._state = state
            self._pid = os.getpid()
            self._state.begin(time.time())  # later than the parent, whose records have the same rank
            if self._records_job:  # the parent may have ended before it wrote or reported the start
                self.recorder.record_job_start_time(self._state.started)
            if self._reporter is not None:
                self._reporter.start(self._state.view)
        takeover.watch(self)
        forked_exit.guard(self._end_by_sigterm)
        self._start_threads(self)

    def _end_by_sigterm(self) -> None:
        """Close the run in the thread that receives SIGTERM in a daemon."""
        self._exit_hooks.note_signal("SIGTERM")
        self.close(timeout_s=closing.SIGNAL_TIMEOUT_S)

    def at_signal(self, name: str, *, dying: bool) -> bool:
        """Record a signal: as the run's end if `dying`, else as its reason.

        Returns:
            False if the signal interrupted `close()`, which must finish first.
        """
        if dying and self._ending:
            return False
        if dying:
            self.close(timeout_s=closing.SIGNAL_TIMEOUT_S)
            return True
        if self._is_settled:  # it has ended already
            return True
        self._settle(terminating(name), last=False)
        self.recording.flush(closing.SIGNAL_TIMEOUT_S / 2)
        self._state.sync(closing.SIGNAL_TIMEOUT_S / 2)
        return True

    def _end(self, phase: Phase | None, timeout_s: float) -> CloseSummary:
        deadline = time.monotonic() + timeout_s
        self._closed = CloseSummary()  # a callback may close the run too
        self._ending = threading.current_thread() is threading.main_thread()
        for callback in reversed(self._close_callbacks):
            closing.call_guarded("on-close", callback)
        now = time.time()  # before the last beat, which takes its time where other programs run
        self._state.sync(timeout_s / 2, write=False)  # it gathers what short programs have not yet
        outcome = judge(self._exit_hooks.evidence(declared=phase, preempted=self._state.preempted))
        if self._records_job and outcome.phase == "Completed":
            self.recorder.record_job_end_time(now)
        self._records_steps = self._records_job = False
        self._settle(outcome, last=True, at=now)
        self._is_settled = True
        if outcome.reason == EXIT_CODE_UNKNOWN:
            from mldiagnostics.exit_status import leave_exit_status  # noqa: PLC0415 - rarely needed

            leave_exit_status(self.directory, self.origin.incarnation)
        self._closed = self.recording.close(timeout_s)
        self._state.finish(max(deadline - time.monotonic(), closing.LAST_WRITE_TIMEOUT_S))
        if self._reporter is not None:
            self._reporter.finish(max(deadline - time.monotonic(), closing.LAST_REPORT_TIMEOUT_S))
        if (files := self._storages.get(os.getpid())) is not None:
            files.close()
        ownership.release(self.run_id, os.environ)
        current_run.leave(self)
        self._ending = False
        self._exit_hooks.unwatch_sigterm()
        return self._closed

    def _settle(self, outcome: RunOutcome, *, last: bool, at: float | None = None) -> None:
        self.run_phase = closing.RUN_PHASES[outcome.phase]
        self._state.settle(outcome, last=last, at=at)
        if self._reporter is not None:
            self._reporter.wake()
