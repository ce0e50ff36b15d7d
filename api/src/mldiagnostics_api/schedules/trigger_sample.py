"""A run at one moment, as triggers need it, and its step times in windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from mldiagnostics.goodput.buckets import BadputType

from mldiagnostics_api.schedules.step_time import StepTimeBaseline

WINDOW_S: Final = 10.0
WARM_UP: Final = 6
"""Windows at the start of an attempt that are not compared: the program compiles and fills its caches."""
EXPLAINED: Final = 0.02
"""Share of the time since the last account from which its losses explain slow steps."""
_NO_EXPLANATION: Final = frozenset(
    each.name for each in (BadputType.DATA_LOADING_SYNC, BadputType.DATA_LOADING_ASYNC, BadputType.OTHER)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSample:
    """A run that is active, at one moment."""

    attempt: int = 0
    step: int | None = None
    step_time_s: float | None = None
    host_step_times: Mapping[str, float] = field(default_factory=dict)
    """Recent step time of each host that reports one, in seconds."""
    signals: Mapping[str, str] = field(default_factory=dict)
    """Messages of the signals that are raised: `Hanging`, `Straggling`, `GoodputLow`."""
    goodput: float | None = None
    elapsed_s: float = 0.0
    """Time of the account of the goodput."""
    unproductive_s: Mapping[str, float] = field(default_factory=dict)
    """Losses of the account by cause."""


class StepTimeWindows:
    """The step times of one run, without the windows that its account explains.

    Checkpoints, evaluations, compilations and recoveries are such windows. Waiting for input is not one.
    """

    __slots__ = (
        "_account",
        "_attempt",
        "_hosts",
        "_since_account",
        "_start",
        "_step",
        "_times",
        "_warming",
        "baseline",
    )

    def __init__(self) -> None:
        self.baseline: Final = StepTimeBaseline()
        self._attempt: int | None = None
        self._hosts = 0
        self._step: int | None = None
        self._times: list[float] = []
        self._start: float | None = None
        self._warming = 0
        self._account = (0.0, 0.0)
        self._since_account = 0

    def observe(self, run: TriggerSample, now: float) -> None:
        """Add an observation; the caller makes one about every `WINDOW_S`."""
        self._note_shape(run)
        self._note_account(run)
        if run.step_time_s and run.step is not None and run.step != self._step:
            self._times.append(run.step_time_s)  # a run that makes no step has no new step time
        self._step = run.step
        if self._start is None or now < self._start:
            self._start = now
        if now - self._start >= WINDOW_S:
            self._close(now)

    def _note_shape(self, run: TriggerSample) -> None:
        if run.attempt != self._attempt:
            self._warming = WARM_UP
            self._times.clear()
        if self._hosts and run.host_step_times and len(run.host_step_times) > 2 * self._hosts:
            self.baseline.clear()
        self._attempt, self._hosts = run.attempt, len(run.host_step_times) or self._hosts

    def _note_account(self, run: TriggerSample) -> None:
        losses = sum(lost for cause, lost in run.unproductive_s.items() if cause not in _NO_EXPLANATION)
        elapsed_s, lost_s = run.elapsed_s - self._account[0], losses - self._account[1]
        if elapsed_s <= 0:
            return
        if self._account[0] and lost_s > EXPLAINED * elapsed_s:
            self.baseline.drop(self._since_account)
            self._times.clear()
        self._account, self._since_account = (run.elapsed_s, losses), 0

    def _close(self, now: float) -> None:
        self._start = now
        if not self._times:
            return
        if self._warming:
            self._warming -= 1
        else:
            self.baseline.add(median(self._times))
            self._since_account += 1
        self._times.clear()
