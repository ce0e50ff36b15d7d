"""`GoodputCalculator`: the queries of ml-goodput-measurement, with its names, tuples and errors.

Every answer is as of `clock()`. `accounting="exact"` divides each microsecond once; `"compatible"` computes as
ml-goodput-measurement 0.2.3 does, for figures to compare with.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.answer import BASE, ELASTIC, GoodputResult, Unproductive
from mldiagnostics.goodput.arguments import retention, window
from mldiagnostics.goodput.buckets import GoodputType
from mldiagnostics.goodput.exact import Exact, micros
from mldiagnostics.goodput.exclusion import GoodputExclusion, normalize_intervals
from mldiagnostics.goodput.source import LogSource

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.accounting import Accounting
    from mldiagnostics.goodput.details import (
        ElasticIntervalWorkloadMetricDetails,
        ElasticWorkloadMetricDetails,
        IntervalWorkloadMetricDetails,
        WorkloadMetricDetails,
    )
    from mldiagnostics.goodput.report import GoodputReport

__all__ = ["ElasticGoodputCalculator", "GoodputCalculator"]

_END_OF_TIME = 7_258_118_400.0  # the year 2200; a time in milliseconds is far beyond

_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")


def _one_at_a_time(
    query: Callable[Concatenate[Any, _Asked], _Found],
) -> Callable[Concatenate[Any, _Asked], _Found]:
    """Let several threads ask one calculator: one of them reads the log, and the others wait."""

    @wraps(query)
    def alone(self: Any, /, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Found:
        with self._lock:
            return query(self, *args, **kwargs)

    return alone


class _LastQuery(NamedTuple):
    """What the last query of the whole job found, and when it was asked."""

    answer: GoodputResult
    now: float
    ideal_step_time: float | None


class GoodputCalculator(GoodputExclusion):
    """Answers where the time of a job went, from its log.

    The log is that of `cloud_logger`, an object with `read_cloud_logging_entries`; else of `log`, a path or URL; else
    the one that a `GoodputRecorder` with the same two names writes (see `mldiagnostics.goodput.location`). `run` is
    one of several runs in the log, by default the newest; `runs` names them.

    `clock` returns the moment that queries answer for, in POSIX seconds: what happened later is not known yet. With
    the default, the time of day, a job that is told to end later has ended. `max_logs_retention_period` (timedelta, or
    seconds) is how far back a remote log is read. What was read is kept in `cache_dir`, with copies below `gcs_path`.
    `using_pathways` is accepted: one controller records for all workers there, which changes nothing here. Several
    threads may ask one calculator.

    Raises `ConfigurationError` (a ValueError) or TypeError for arguments that cannot be meant. Queries raise
    `LogUnreadable` if there is no log, saying where it should be.
    """

    _elastic = False

    def __init__(  # noqa: PLR0917 - the peer's order
        self,
        job_name: str,
        logger_name: str,
        cloud_logger: Any = None,
        using_pathways: bool = False,  # noqa: ARG002 - see above
        max_logs_retention_period: timedelta | float | None = None,
        gcs_path: str | None = None,
        cache_dir: str | os.PathLike[str] = "/tmp",  # noqa: S108 - the peer's default
        *,
        clock: Callable[[], float] = time.time,
        accounting: str = "exact",
        log: str | os.PathLike[str] | None = None,
        run: str | None = None,
    ) -> None:
        if not callable(clock):
            raise TypeError(f"clock={clock!r} cannot be called: give a function that returns POSIX seconds")
        if accounting not in {"exact", "compatible"}:
            raise ConfigurationError(f"accounting={accounting!r} is not known: give 'exact' or 'compatible'")
        self._clock = clock
        self._lock = threading.RLock()
        live = clock is time.time
        self._source = LogSource(
            job_name,
            logger_name,
            given=cloud_logger,
            log=log,
            retention=retention(max_logs_retention_period),
            cache_dir=cache_dir,
            gcs_path=gcs_path,
            live=live,
        )
        buckets = BASE + ELASTIC if self._elastic else BASE
        self._run = run
        self._exact = Exact(self._source, run=run, buckets=buckets, live=live)
        self._accounting: Accounting = self._exact
        if accounting == "compatible":
            from mldiagnostics.goodput.compatible import Compatible  # noqa: PLC0415 - few want it

            self._accounting = Compatible(self._source, elastic=self._elastic)
        self._told: _LastQuery | None = None

    def __repr__(self) -> str:  # type: ignore[explicit-override]
        """Name the log."""
        return f"<{type(self).__name__} of {self._source.name}>"

    @property
    @_one_at_a_time
    def ignored(self) -> dict[str, int]:
        """What the last query did not believe of the log: reason -> how often."""
        return self._exact.ignored(self._now())

    @property
    @_one_at_a_time
    def runs(self) -> list[str]:
        """The runs that the log tells of, the oldest first; queries answer for the newest unless `run` is given."""
        return self._exact.runs(self._now())

    @_one_at_a_time
    def get_job_goodput(
        self, include_badput_breakdown: bool = False, configured_ideal_step_time: float | None = None
    ) -> tuple[float, Unproductive, int]:
        """Return goodput in per cent, the other time in per cent by bucket if wanted, and the highest step.

        `configured_ideal_step_time` (seconds) is what deviations of steps are counted from in
        `get_job_goodput_details()`. Raises ValueError if the log has no start of the job.
        """
        now = self._now()
        answer = self._accounting.cumulative(now)
        self._told = _LastQuery(answer, now, configured_ideal_step_time)
        breakdown = self._accounting.breakdown(answer) if include_badput_breakdown else {}
        return answer.goodput, breakdown, answer.max_step

    @_one_at_a_time
    def get_job_goodput_interval(
        self, interval_start: datetime, interval_end: datetime
    ) -> tuple[float, Unproductive, int, float, int]:
        """Return goodput and breakdown in per cent, the highest step, the job's seconds and its disruptions in it.

        Times without a zone are UTC. Raises ValueError if a bound is None, if nothing of the job lies in the window or
        if it does not end after it begins, and TypeError for bounds that are no datetimes.
        """
        now = self._now()
        answer = self._accounting.interval(*window(interval_start, interval_end), now)
        breakdown = self._accounting.breakdown(answer)
        return answer.goodput, breakdown, answer.max_step, answer.elapsed, answer.disruptions

    @_one_at_a_time
    def get_job_goodput_with_exclusions(  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        self,
        exclusion_intervals: Sequence[tuple[datetime, datetime]],
        include_badput_breakdown: bool = False,
        configured_ideal_step_time: float | None = None,
    ) -> tuple[float, Unproductive, int, float]:
        """Return goodput and breakdown in per cent of the time outside intervals, the highest step, seconds left out.

        If nothing remains that is `(0.0, {}, step, seconds)`.
        """
        now = self._now()
        answer = self._accounting.excluding(normalize_intervals(exclusion_intervals), now)
        if not answer.elapsed:
            return 0.0, {}, answer.max_step, answer.excluded
        self._told = _LastQuery(answer, now, configured_ideal_step_time)
        breakdown = self._accounting.breakdown(answer) if include_badput_breakdown else {}
        return answer.goodput, breakdown, answer.max_step, answer.excluded

    @_one_at_a_time
    def get_step_deviation(self, configured_ideal_step_time: float | None = None) -> dict[int, float]:
        """Return by how many seconds each step is off the ideal step time, or off the one given.

        Raises ValueError if no step has ended, or if no ideal can be told.
        """
        steps = self._accounting.steps(self._now())
        if not steps.durations:
            raise ValueError(f"no step times: {self._source.name} tells of no step that ended")
        ideal = steps.ideal if configured_ideal_step_time is None else configured_ideal_step_time
        if ideal is None:
            raise ValueError("no ideal step time can be told from these steps: give configured_ideal_step_time")
        return steps.deviations(ideal)

    @_one_at_a_time
    def get_job_goodput_details(self) -> WorkloadMetricDetails:
        """Return what the last query of the whole job found, in seconds; empty maps and zeros before any."""
        if self._told is None:
            return _no_details()
        answer, now, ideal = self._told
        steps = self._accounting.steps(now)
        ideal = steps.ideal if ideal is None else ideal
        return {
            "goodput_time": {GoodputType.TOTAL: answer.productive},
            "badput_time": answer.unproductive,
            "max_productive_step": answer.max_step,
            "total_elapsed_time": answer.elapsed,
            "disruption_count": answer.disruptions,
            "step_time_deviation": {} if ideal is None else steps.deviations(ideal),
            "ideal_step_time": ideal or 0.0,
            "total_excluded_time": answer.excluded,
        }

    @_one_at_a_time
    def get_interval_metric_details(
        self, interval_start: datetime, interval_end: datetime
    ) -> IntervalWorkloadMetricDetails:
        """Return a window in per cent, and its size in whole seconds; empty maps if it has no answer."""
        details: IntervalWorkloadMetricDetails = {"interval_goodput": {}, "interval_badput": {}, "interval_size": 0}
        try:
            start, end = window(interval_start, interval_end)
            details["interval_size"] = int(end - start)
            goodput, badput, *_ = self.get_job_goodput_interval(interval_start, interval_end)
        except ValueError:
            return details
        return {**details, "interval_goodput": {GoodputType.TOTAL: goodput}, "interval_badput": badput}

    @_one_at_a_time
    def report(
        self,
        *,
        windows_s: Sequence[float] = (),
        exclude: Sequence[tuple[datetime, datetime]] = (),
        devices: float | None = None,
    ) -> GoodputReport:
        """Return everything that the log tells, exactly, in one typed object.

        `windows_s` are sliding windows in seconds; `devices` are those of all workers together, also where one
        controller records for all.
        """
        from mldiagnostics.goodput.report import make_report  # noqa: PLC0415 - the peer's queries do without

        view, moment = self._exact.view(self._now())
        runs = self._source.history.runs(moment)
        report = make_report(
            view,
            now=moment,
            windows_s=windows_s,
            exclude=[(micros(start), micros(end)) for start, end in normalize_intervals(exclude)],
            devices=devices,
            name=self._source.name,
            job=self._source.job_name,
            run=self._run or next(reversed(runs), ""),
            runs=runs,
        )
        return replace(report, ignored=self._exact.ignored_in(view), corrected=dict(self._source.history.corrected))

    @_one_at_a_time
    def sync_to_gcs(self) -> None:
        """Keep what was read below `gcs_path`, so that another machine need not read it again; never raises."""
        self._source.sync()

    def _now(self) -> float:
        now: object = self._clock()
        if isinstance(now, (float, int)) and 0 <= now < _END_OF_TIME:
            return now
        raise TypeError(f"clock returned {now!r}: it must return POSIX seconds")


class ElasticGoodputCalculator(GoodputCalculator):
    """The same for elastic jobs: three buckets more, and the shares of the slices that stepped and that could."""

    _elastic = True

    @_one_at_a_time
    def get_job_goodput_details(self) -> ElasticWorkloadMetricDetails:  # type: ignore[explicit-override]
        """Return what the last query of the whole job found; slice efficiencies (0-1) where slices were recorded."""
        details = cast("ElasticWorkloadMetricDetails", super().get_job_goodput_details())
        shares = self._accounting.slices(self._told.now) if self._told else None
        if shares is not None:
            details["stepping_slice_efficiency"], details["available_slice_efficiency"] = shares
        return details

    @_one_at_a_time
    def get_interval_metric_details(  # type: ignore[explicit-override]
        self, interval_start: datetime, interval_end: datetime
    ) -> ElasticIntervalWorkloadMetricDetails:
        """Return a window in per cent; slice efficiencies (0-1) where slices were recorded."""
        told = super().get_interval_metric_details(interval_start, interval_end)
        details = cast("ElasticIntervalWorkloadMetricDetails", told)
        if details["interval_size"]:
            shares = self._accounting.slices(self._now(), window(interval_start, interval_end))
            if shares is not None:
                details["stepping_slice_efficiency"], details["available_slice_efficiency"] = shares
        return details


def _no_details() -> WorkloadMetricDetails:
    return {
        "goodput_time": {},
        "badput_time": {},
        "max_productive_step": 0,
        "total_elapsed_time": 0.0,
        "disruption_count": 0,
        "step_time_deviation": {},
        "ideal_step_time": 0.0,
        "total_excluded_time": 0.0,
    }
