"""One run as the program holds it: its facts, its progress, its end; nothing here raises into the program."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.detection import detect
from mldiagnostics.configs.kinds import Framework, RunPhase
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.lifecycle import current_run
from mldiagnostics.lifecycle.outcome import FINAL, Phase, RunOutcome, judge, terminating
from mldiagnostics.run import ownership
from mldiagnostics.run.config_dict import ConfigDict
from mldiagnostics.run.fields import RunFields, told_kinds, told_process
from mldiagnostics.run.state import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from mldiagnostics.cloud import CloudEnvironment
    from mldiagnostics.goodput.elastic_recorder import ElasticGoodputRecorder
    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.pipeline.recorder import CloseSummary, RecordPipeline
    from mldiagnostics.run.arguments import RunArguments
    from mldiagnostics.run.exit_hooks import ExitHooks
    from mldiagnostics.spool.storage import RunStorage

CLOSE_TIMEOUT_S = 10.0
"""How long the end of a run may take; what is not written then is counted as dropped."""

SIGNAL_TIMEOUT_S = 5.0
"""The same in a signal's handler: of the 30 s that Kubernetes gives, the program wants most for a checkpoint."""

_LAST_BEAT_TIMEOUT_S = 2.0
_LAST_WORD_TIMEOUT_S = 2.0  # run.json gets so much even if a sink has used up the time
_PHASES: dict[Phase, RunPhase] = {
    "Pending": RunPhase.PHASE_UNSPECIFIED,
    "Active": RunPhase.PHASE_ACTIVE,
    "Completed": RunPhase.PHASE_COMPLETED,
    "Failed": RunPhase.PHASE_FAILED,
}
_NO_FAILURE = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit)
"""What may be in flight while a run is closed in good order."""


class MLRun(RunFields):
    """A run, made by `machinelearning_run`; as a context manager it closes itself.

    `configs` is read by key and by attribute, and a change of it is recorded. `origin`, `recording`, `storage` (the
    root for all runs) and `directory` (this run's, below it) serve the other parts of this package.

    `recorder` takes what the run spends its time on beside steps: `with run.recorder.event("EVAL"):`. The steps that
    rank 0 tells of, its begin and its good end are recorded there by themselves.
    """

    def __init__(
        self,
        fields: RunFields,
        *,
        arguments: RunArguments,
        whereabouts: ResolvedIdentity,
        recording: RecordPipeline,
        recorder: ElasticGoodputRecorder,
        endings: ExitHooks,
        cloud: CloudEnvironment,
        leads: bool,
        heartbeat_s: float,
    ) -> None:
        vars(self).update(vars(fields))
        self.origin, self.recording, self.cloud = recording.origin, recording, cloud
        self.storage, self.directory = self.origin.storage, self.origin.directory
        self.sinks = arguments.sinks
        self.recorder = recorder
        self._storages: dict[int, RunStorage] = {}  # by process: a forked child has files of its own
        self._endings = endings
        self._pid = os.getpid()
        self._accounts = whereabouts.place.leads
        self._closing = threading.RLock()
        self._closed: CloseSummary | None = None
        self._ending = False
        self._told = False
        """Whether the last word of the run was said: what changes later is not recorded."""
        self._at_step: list[Callable[[int], object]] = []
        self._at_close: list[Callable[[], object]] = []
        self._configs = ConfigDict(
            {"softwareConfigs": {}, "hardwareConfigs": {}, "userConfigs": arguments.configs},
            on_change=self._reconfigured,
        )
        identity = whereabouts.identity
        self._report = RunState(
            origin=self.origin,
            recording=recording,
            leads=leads,
            heartbeat_s=heartbeat_s,
            facts={
                "runGroup": self.run_group,
                "identity": {
                    "source": identity.source if identity else "fresh",
                    "workload": dict(identity.workload) if identity else {},
                },
                "process": told_process(whereabouts),
                "sinks": list(arguments.sinks),
            },
            kinds=lambda: told_kinds(self),
            configs=lambda: self._configs,
            gather=self._gather,
            storage=lambda: self.files,
        )

    @property
    def run_id(self) -> str:
        """The id that all processes of the run have in common."""
        return self.origin.run_id

    @property  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
    def framework(self) -> Framework:
        """What the program said that it uses, else what it has imported by now."""
        said: Framework = vars(self)["framework"]
        return detect() if said is Framework.DETECT else said

    @framework.setter
    def framework(self, framework: Framework) -> None:
        vars(self)["framework"] = framework

    @property
    def files(self) -> RunStorage:
        """The storage for this process's profiles and run.json, and the spool for what it does not take."""
        found = self._storages.get(os.getpid())
        if found is None:
            from mldiagnostics.spool.storage import RunStorage  # noqa: PLC0415 - loaded by the threads that store

            found = self._storages.setdefault(
                os.getpid(), RunStorage(self.recording.origin)
            )  # of two threads, one wins
        return found

    @property
    def configs(self) -> ConfigDict:
        """Configurations: `userConfigs`, `softwareConfigs`, `hardwareConfigs`, and whatever is put beside them."""
        return self._configs

    @configs.setter
    def configs(self, values: Mapping[str, Any]) -> None:
        self._configs.update({"userConfigs": values})

    @property
    def closed(self) -> bool:
        """Whether the run is over for this process."""
        return self._closed is not None

    def step(self, number: int | None = None) -> None:
        """Say that step `number` begins; without one it is the step after the last, the first is 0.

        Goodput follows from it: a step lasts until the next one begins, and one that is not above the last begins after
        a loss of progress. The number of the last step once more is the same step.
        """
        try:
            last = self._report.step
            step = int(number) if number is not None else 0 if last is None else last + 1
        except (TypeError, ValueError, OverflowError):
            warn_once("step", f"run.step({number!r}) names no step and is ignored: give a whole number")
            return
        self._report.step = step
        if self._accounts and step != last:
            self.recorder.record_step_start_time(step)
        for callback in self._at_step:
            _guarded("on-step", callback, step)

    def on_step(self, callback: Callable[[int], object]) -> None:
        """Have `callback` called with every step that begins, on the thread that says so; it should take no time."""
        self._at_step.append(callback)

    def on_close(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when the run is closed, the last one first, while records are still taken."""
        self._at_close.append(callback)

    def publish(self, section: str, value: Mapping[str, object]) -> None:
        """Put a section of its own into run.json (only the process that leads has one); the last value counts."""
        self._report.publish(section, value)

    def warn_once(self, key: str, message: str) -> None:
        """Say `message` the first time that `key` comes, and count every time."""
        warn_once(key, message)

    def close(self, phase: RunPhase | str | None = None, *, timeout_s: float = CLOSE_TIMEOUT_S) -> CloseSummary:
        """End the run: everything recorded is written, within about `timeout_s`, and the phase with it.

        Without `phase` that is Completed, or Failed if an exception is in flight or has ended a thread. A second time
        changes nothing. In a forked child it ends the child's records only: the phase is the parent's.
        """
        if os.getpid() != self._pid:
            return self.recording.close(_seconds(timeout_s))
        with self._closing:
            if self._closed is None:
                kind, error, _ = sys.exc_info()
                if kind is not None and not issubclass(kind, _NO_FAILURE):
                    self._endings.note_uncaught(kind, error)
                self._end(_phase_said(phase), _seconds(timeout_s))
        assert self._closed is not None  # noqa: S101 - for mypy: set above
        return self._closed

    def __enter__(self) -> MLRun:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, GeneratorExit) and not self.closed:
            self._endings.note_uncaught(kind, error)
        self.close()

    def __copy__(self) -> MLRun:
        return self

    def __deepcopy__(self, _: object) -> MLRun:  # with a configuration that holds it, say
        return self

    def __reduce__(self) -> tuple[Callable[[str], MLRun], tuple[str]]:  # type: ignore[explicit-override]
        return _run_there, (self.display_name,)

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        return f"<MLRun {self.display_name!r} {self.run_phase.value} {self.directory}>"

    def begin(self, asked: float) -> None:
        """Be the run of this process; called once, by whoever made it. `asked` is when the program wanted it."""
        current_run.enter(self)
        self._endings.watch_sigterm()
        if self._accounts:
            self.recorder.record_job_start_time(asked)
        self._report.start()

    def at_exit(self) -> None:
        """End with the process."""
        self.close()

    def at_signal(self, name: str, *, dying: bool) -> bool:
        """Report a signal: as the end if the process dies of it, else as one that the program's own handler takes.

        False if the signal came while its thread was closing the run, which must be done first.
        """
        if dying and self._ending:
            return False
        if dying:
            self.close(timeout_s=SIGNAL_TIMEOUT_S)
            return True
        self._settle(terminating(name), last=False)
        self.recording.flush(SIGNAL_TIMEOUT_S / 2)
        self._report.sync(SIGNAL_TIMEOUT_S / 2)
        return True

    def _end(self, said: Phase | None, timeout_s: float) -> None:
        from mldiagnostics.pipeline.recorder import CloseSummary  # noqa: PLC0415

        deadline, now = time.monotonic() + timeout_s, time.time()
        self._closed = CloseSummary()  # a callback may close the run too
        self._ending = threading.current_thread() is threading.main_thread()
        for callback in reversed(self._at_close):
            _guarded("on-close", callback)
        self._report.sync(_LAST_BEAT_TIMEOUT_S, write=False)
        verdict = judge(self._endings.evidence(said=said, preempted=self._report.preempted))
        if self._accounts and verdict.phase == "Completed":
            self.recorder.record_job_end_time(now)
        self._accounts = False
        self._settle(verdict, last=True)
        self._told = True
        self._closed = self.recording.close(timeout_s)
        self._report.finish(max(deadline - time.monotonic(), _LAST_WORD_TIMEOUT_S))
        if (files := self._storages.get(os.getpid())) is not None:
            files.close()
        ownership.release(self.run_id, os.environ)
        current_run.leave(self)
        self._ending = False
        self._endings.unwatch_sigterm()

    def _settle(self, verdict: RunOutcome, *, last: bool) -> None:
        self.run_phase = _PHASES[verdict.phase]
        self._report.settle(verdict, last=last)

    def _reconfigured(self) -> None:
        if self._told:
            warn_once(
                "configs-closed",
                f"configs of run {self.display_name!r}: changed after run.close() and not recorded; change them before",
            )
        self._report.configured()

    def _gather(self) -> None:
        if self._told:
            return
        from mldiagnostics.configs import gather  # noqa: PLC0415 - on a thread of the run's, not with the first import

        if news := gather(self.framework.value, self._configs):
            self._configs.update(news)


def _run_there(name: str) -> MLRun:
    """Return what a pickled run stands for in another process: the run that it is in, or one that keeps nothing."""
    from mldiagnostics.run.startup import unrecorded  # noqa: PLC0415 - begins runs, and so imports this module

    return current_run.current() or unrecorded(name)


def _phase_said(phase: RunPhase | str | None) -> Phase | None:
    """Return our name of a phase that was given as Google's or as ours."""
    if phase is None:
        return None
    text = str(phase.value if isinstance(phase, RunPhase) else phase).upper()
    found = next((ours for ours, theirs in _PHASES.items() if ours in FINAL and theirs.value == text), None)
    if found is None:
        warn_once("phase", f"run.close(phase={phase!r}) is no end, what was seen decides: give RunPhase.PHASE_FAILED")
    return found


def _seconds(timeout_s: float) -> float:
    try:
        return max(0.0, min(float(timeout_s), threading.TIMEOUT_MAX))
    except (TypeError, ValueError):
        warn_once("close", f"run.close(timeout_s={timeout_s!r}) is no number of seconds; {CLOSE_TIMEOUT_S:g} is used")
        return CLOSE_TIMEOUT_S


def _guarded(key: str, callback: Callable[..., object], *arguments: object) -> None:
    try:
        callback(*arguments)
    except Exception as error:  # noqa: BLE001 - whoever it belongs to, the training goes on
        warn_once(f"{key}-{getattr(callback, '__qualname__', 'callback')}", f"a callback failed ({key}): {error!r}")
