"""Queries of one run of a log, in seconds and per cent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.queries.results import empty_buckets, percentages, result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.buckets import BadputType
    from mldiagnostics.goodput.ledger.history import History, Run
    from mldiagnostics.goodput.queries.results import GoodputResult, UnproductiveTimeDict
    from mldiagnostics.goodput.queries.source import LogSource
    from mldiagnostics.goodput.report import GoodputReport


class StepSeries(NamedTuple):
    """Indexes and seconds of steps, and their ideal step time if it is known."""

    steps: Sequence[int]
    durations: Sequence[float]
    ideal: float | None

    def deviations(self, ideal: float) -> dict[int, float]:
        """Return by how many seconds each step is off an ideal."""
        return dict(zip(self.steps, [abs(duration - ideal) for duration in self.durations], strict=True))


class RunQueries:
    """Queries of one run of a log, by default the newest.

    Breakdowns have all of `buckets`. Results are as of `now`, in POSIX seconds. If that is the time of day (`live`), a
    job whose recorded end lies in the future has ended too: its clock is ahead, or a test made its times up.
    """

    def __init__(self, source: LogSource, *, run: str | None, buckets: Sequence[BadputType], live: bool) -> None:
        self._source = source
        self._run = run
        self._empty = empty_buckets(buckets)
        self._live = live

    def view(self, now: float) -> tuple[Run, int]:
        """Return the updated run, and the moment of the query in microseconds."""
        history, moment = self._read(now)
        try:
            return history.of(moment, self._run), moment
        except KeyError as error:
            known = ", ".join(history.runs(moment))
            raise ConfigurationError(f"run={self._run!r}: not in {self._source.name}; use one of {known}") from error

    def runs(self, now: float) -> list[str]:
        """Return the names of the runs in the log, oldest first."""
        history, moment = self._read(now)
        return history.runs(moment)

    def ignored(self, now: float) -> dict[str, int]:
        """Return how many entries of the log were ignored, by reason."""
        view, moment = self.view(now)
        view.account(moment)
        return self.ignored_in(view)

    def ignored_in(self, view: Run) -> dict[str, int]:
        """Return how many entries of a queried run and its log were ignored, by reason."""
        return dict(Counter(self._source.history.ignored) + Counter(view.ignored))

    def cumulative(self, now: float) -> GoodputResult:
        """Return the account of the whole job. Raises ValueError if no job start is known."""
        view, moment = self.view(now)
        account, started = view.account(moment), view.started
        if started is None or started > moment or not account.elapsed:
            raise ValueError(f"total job time is 0: {self._source.name} has no job start before now")
        return result_of(account)

    def interval(self, start: float, end: float, now: float) -> GoodputResult:
        """Return the account of a window. Raises ValueError if the job did not run in it."""
        view, moment = self.view(now)
        account = view.account(moment, start=micros(start), end=micros(end))
        if not account.elapsed:
            raise ValueError(f"no entries in the window: {self._source.name} has no job that ran then")
        return result_of(account)

    def excluding(self, windows: Sequence[tuple[float, float]], now: float) -> GoodputResult:
        """Return the account of the job without the time in normalized windows."""
        exclude = [(micros(start), micros(end)) for start, end in windows]
        view, moment = self.view(now)
        return result_of(view.account(moment, exclude=exclude))

    def report(
        self,
        now: float,
        *,
        windows_s: Sequence[float],
        exclude: Sequence[tuple[float, float]],
        devices: float | None,
    ) -> GoodputReport:
        """Return the whole account of the run; `exclude` has normalized intervals."""
        from mldiagnostics.goodput.report import make_report  # noqa: PLC0415 - the peer's queries do not need it

        view, moment = self.view(now)
        runs = self._source.history.runs(moment)
        report = make_report(
            view,
            now=moment,
            windows_s=windows_s,
            exclude=[(micros(start), micros(end)) for start, end in exclude],
            devices=devices,
            name=self._source.name,
            job=self._source.job_name,
            run=self._run or next(reversed(runs), ""),
            runs=runs,
        )
        return replace(report, ignored=self.ignored_in(view), corrected=dict(self._source.history.corrected))

    def _read(self, now: float) -> tuple[History, int]:
        history = self._source.read(now)
        return history, max(micros(now), history.last_end) if self._live else micros(now)

    def breakdown(self, result: GoodputResult) -> UnproductiveTimeDict:
        """Return the buckets of a result in per cent."""
        return percentages({**self._empty, **result.unproductive}, result.elapsed)

    def steps(self, now: float) -> StepSeries:
        """Return the durations of completed steps, without events inside them."""
        view, moment = self.view(now)
        times = view.step_times(moment)
        ideal = view.ideal_step_time(moment)
        durations = [spent / 1e6 for spent in times.durations]
        return StepSeries(times.steps[:], durations, None if ideal is None else ideal / 1e6)

    def slices(self, now: float, window: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return the shares of stepping and available slices; None without records."""
        view, moment = self.view(now)
        if window is not None:
            return view.slices(moment, *map(micros, window))
        whole = view.account(moment)
        return view.slices(moment, whole.start, whole.end)


def micros(seconds: float) -> int:
    """Return POSIX seconds as whole microseconds."""
    return round(seconds * 1e6)
