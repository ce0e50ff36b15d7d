"""Exact accounting: a log is folded into a history once, queries are answered from that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.accounting import Steps
from mldiagnostics.goodput.answer import answer_of, nothing_in, percentages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.answer import Answer, Unproductive
    from mldiagnostics.goodput.buckets import BadputType
    from mldiagnostics.goodput.history import Run
    from mldiagnostics.goodput.source import Source

__all__ = ["Exact", "micros"]


class Exact:
    """Answers for one run of a log, the newest by default; breakdowns always have each of `buckets`."""

    def __init__(self, source: Source, *, run: str | None, buckets: Sequence[BadputType]) -> None:
        self._source = source
        self._run = run
        self._nothing = nothing_in(buckets)

    def view(self, now: float) -> Run:
        """Return the run as it is known now, everything new in the log included."""
        history = self._source.read(now)
        try:
            return history.of(micros(now), self._run)
        except KeyError as error:
            known = ", ".join(history.runs(micros(now)))
            raise ConfigurationError(f"{self._source.name} has no run {self._run!r}: give one of {known}") from error

    def run(self, now: float) -> str:
        """Return the name of the run that answers are about, empty if the log tells of none."""
        return self._run or next(reversed(self._source.read(now).runs(micros(now))), "")

    def ignored(self, now: float) -> dict[str, int]:
        """Return what of the log was not believed: reason -> how often."""
        view = self.view(now)
        view.account(micros(now))
        return dict(Counter(self._source.history.ignored) + Counter(view.ignored))

    def cumulative(self, now: float) -> Answer:
        """Return the account of the whole job. Raises ValueError if no job start is known."""
        view, moment = self.view(now), micros(now)
        account, started = view.account(moment), view.started
        if started is None or started > moment or not account.elapsed:
            raise ValueError(f"total job time is 0: {self._source.name} has no start of the job before now")
        return answer_of(account)

    def interval(self, start: float, end: float, now: float) -> Answer:
        """Return the account of a window. Raises ValueError if nothing of the job lies in it."""
        account = self.view(now).account(micros(now), start=micros(start), end=micros(end))
        if not account.elapsed:
            raise ValueError(f"no entries in the window: {self._source.name} tells of no job that ran then")
        return answer_of(account)

    def excluding(self, windows: Sequence[tuple[float, float]], now: float) -> Answer:
        """Return the account of the job without the time in normalized windows; elapsed may be 0."""
        exclude = [(micros(start), micros(end)) for start, end in windows]
        return answer_of(self.view(now).account(micros(now), exclude=exclude))

    def breakdown(self, answer: Answer) -> Unproductive:
        """Return the buckets of an answer in per cent."""
        return percentages({**self._nothing, **answer.unproductive}, answer.elapsed)

    def steps(self, now: float) -> Steps:
        """Return how long the steps took that are done and not lost, without events inside them."""
        view = self.view(now)
        times = view.step_times(micros(now))
        ideal = view.ideal_step_time(micros(now))
        durations = [spent / 1e6 for spent in times.durations]
        return Steps(times.steps, durations, None if ideal is None else ideal / 1e6)

    def slices(self, now: float, window: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return which shares of the slices stepped, and could; None without any record."""
        view = self.view(now)
        if window is not None:
            return view.slices(micros(now), *map(micros, window))
        whole = view.account(micros(now))
        return view.slices(micros(now), whole.start, whole.end)


def micros(seconds: float) -> int:
    """Return POSIX seconds as whole microseconds."""
    return round(seconds * 1e6)
