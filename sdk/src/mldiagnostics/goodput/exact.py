"""Exact accounting: a log is folded into a history once, queries are answered from that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.accounting import StepSeries
from mldiagnostics.goodput.answer import answer_of, nothing_in, percentages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.answer import GoodputResult, Unproductive
    from mldiagnostics.goodput.buckets import BadputType
    from mldiagnostics.goodput.history import History, Run
    from mldiagnostics.goodput.source import LogSource

__all__ = ["Exact", "micros"]


class Exact:
    """Answers for one run of a log, the newest by default; breakdowns always have each of `buckets`.

    Answers are as of `now`. Where that is the time of day (`live`), a job whose end is told for later has ended too:
    its clock is ahead, or it is made up.
    """

    def __init__(self, source: LogSource, *, run: str | None, buckets: Sequence[BadputType], live: bool) -> None:
        self._source = source
        self._run = run
        self._nothing = nothing_in(buckets)
        self._live = live

    def view(self, now: float) -> tuple[Run, int]:
        """Return the run with everything new in the log, and as of when to ask it, in microseconds."""
        history, moment = self._read(now)
        try:
            return history.of(moment, self._run), moment
        except KeyError as error:
            known = ", ".join(history.runs(moment))
            raise ConfigurationError(f"{self._source.name} has no run {self._run!r}: give one of {known}") from error

    def runs(self, now: float) -> list[str]:
        """Return the names of the runs in the log, oldest first."""
        history, moment = self._read(now)
        return history.runs(moment)

    def ignored(self, now: float) -> dict[str, int]:
        """Return what of the log was not believed: reason -> how often."""
        view, moment = self.view(now)
        view.account(moment)
        return self.ignored_in(view)

    def ignored_in(self, view: Run) -> dict[str, int]:
        """Return what was not believed of a run that has been asked, and of the log, without reading anything."""
        return dict(Counter(self._source.history.ignored) + Counter(view.ignored))

    def cumulative(self, now: float) -> GoodputResult:
        """Return the account of the whole job. Raises ValueError if no job start is known."""
        view, moment = self.view(now)
        account, started = view.account(moment), view.started
        if started is None or started > moment or not account.elapsed:
            raise ValueError(f"total job time is 0: {self._source.name} has no start of the job before now")
        return answer_of(account)

    def interval(self, start: float, end: float, now: float) -> GoodputResult:
        """Return the account of a window. Raises ValueError if nothing of the job lies in it."""
        view, moment = self.view(now)
        account = view.account(moment, start=micros(start), end=micros(end))
        if not account.elapsed:
            raise ValueError(f"no entries in the window: {self._source.name} tells of no job that ran then")
        return answer_of(account)

    def excluding(self, windows: Sequence[tuple[float, float]], now: float) -> GoodputResult:
        """Return the account of the job without the time in normalized windows; elapsed may be 0."""
        exclude = [(micros(start), micros(end)) for start, end in windows]
        view, moment = self.view(now)
        return answer_of(view.account(moment, exclude=exclude))

    def _read(self, now: float) -> tuple[History, int]:
        history = self._source.read(now)
        return history, max(micros(now), history.last_end) if self._live else micros(now)

    def breakdown(self, answer: GoodputResult) -> Unproductive:
        """Return the buckets of an answer in per cent."""
        return percentages({**self._nothing, **answer.unproductive}, answer.elapsed)

    def steps(self, now: float) -> StepSeries:
        """Return how long the steps took that are done and not lost, without events inside them."""
        view, moment = self.view(now)
        times = view.step_times(moment)
        ideal = view.ideal_step_time(moment)
        durations = [spent / 1e6 for spent in times.durations]
        return StepSeries(times.steps, durations, None if ideal is None else ideal / 1e6)

    def slices(self, now: float, window: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return which shares of the slices stepped, and could; None without any record."""
        view, moment = self.view(now)
        if window is not None:
            return view.slices(moment, *map(micros, window))
        whole = view.account(moment)
        return view.slices(moment, whole.start, whole.end)


def micros(seconds: float) -> int:
    """Return POSIX seconds as whole microseconds."""
    return round(seconds * 1e6)
