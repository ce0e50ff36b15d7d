"""`GoodputCalculator`: the queries of ml-goodput-measurement.

Names, return types and errors are the same. Numbers are exact: each microsecond counts once. Decision 0018 lists where
they differ from ml-goodput-measurement.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.buckets import GoodputType
from mldiagnostics.goodput.queries.arguments import posix_now, retention, window
from mldiagnostics.goodput.queries.details import empty_details, job_details
from mldiagnostics.goodput.queries.exclusion import GoodputExclusion, normalize_intervals
from mldiagnostics.goodput.queries.locking import serialized
from mldiagnostics.goodput.queries.results import BASE, ELASTIC, GoodputResult, UnproductiveTimeDict
from mldiagnostics.goodput.queries.run_queries import RunQueries
from mldiagnostics.goodput.queries.source import LogSource

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.queries.details import IntervalWorkloadMetricDetails, WorkloadMetricDetails
    from mldiagnostics.goodput.report import GoodputReport


class _LastQuery(NamedTuple):
    """The result of the last query of the whole job, and its moment in POSIX seconds."""

    result: GoodputResult
    now: float
    ideal_step_time: float | None


class GoodputCalculator(GoodputExclusion):
    """Computes how the time of a job was spent, from its log.

    Several threads can share one calculator. Queries raise `LogUnreadable`, with the places that were searched, if
    there is no log.

    Args:
        job_name: The job, as given to its `GoodputRecorder`.
        logger_name: The log, as given to the recorder.
        cloud_logger: An object with `read_cloud_logging_entries` to read instead of a log.
        using_pathways: Accepted and ignored: one controller records for all workers.
        max_logs_retention_period: How far back a remote log is read, as timedelta or in seconds; None reads all of it.
        gcs_path: A `gs://` URL below which `sync_to_gcs` stores the history that was read.
        cache_dir: A local directory for the history that was read, for the next process.
        clock: Returns the moment of a query in POSIX seconds; later events are not counted. With the default, the
            time of day, a job whose recorded end lies in the future has ended.
        log: The path or URL of the log; None finds it by the two names, see `mldiagnostics.goodput.location`.
        run: One of several runs in the log, by its name in `runs`; None is the newest.

    Raises:
        ConfigurationError: A name is empty, or two logs are given; it is a ValueError.
        TypeError: An argument has another type.

    Example:
        >>> calculator = GoodputCalculator("my-job", "goodput_my-job")
        >>> goodput, badput, max_step = calculator.get_job_goodput(include_badput_breakdown=True)
    """

    _elastic = False

    def __init__(  # noqa: PLR0917 - the peer's order
        self,
        job_name: str,
        logger_name: str,
        cloud_logger: Any = None,
        using_pathways: bool = False,  # noqa: ARG002 - of the peer
        max_logs_retention_period: timedelta | float | None = None,
        gcs_path: str | None = None,
        cache_dir: str | os.PathLike[str] = "/tmp",  # noqa: S108 - the peer's default
        *,
        clock: Callable[[], float] = time.time,
        log: str | os.PathLike[str] | None = None,
        run: str | None = None,
    ) -> None:
        if not callable(clock):
            raise TypeError(f"clock={clock!r}: not callable; pass a function that returns POSIX seconds")
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
        self._queries = RunQueries(self._source, run=run, buckets=buckets, live=live)
        self._last_query: _LastQuery | None = None

    def __repr__(self) -> str:  # type: ignore[explicit-override]
        """Return the class and the log."""
        return f"<{type(self).__name__} of {self._source.name}>"

    @property
    @serialized
    def ignored(self) -> dict[str, int]:
        """Number of ignored entries of the log, by reason."""
        return self._queries.ignored(self._now())

    @property
    @serialized
    def runs(self) -> list[str]:
        """Names of the runs in the log, the oldest first."""
        return self._queries.runs(self._now())

    @serialized
    def get_job_goodput(
        self, include_badput_breakdown: bool = False, configured_ideal_step_time: float | None = None
    ) -> tuple[float, UnproductiveTimeDict, int]:
        """Return goodput, badput breakdown and the highest completed step.

        Goodput and breakdown are in per cent of the elapsed time of the job.

        Args:
            include_badput_breakdown: Whether to return the breakdown; without it, the second value is empty.
            configured_ideal_step_time: Seconds from which `get_job_goodput_details()` computes step deviations.

        Raises:
            ValueError: The log has no start of the job.
        """
        now = self._now()
        result = self._queries.cumulative(now)
        self._last_query = _LastQuery(result, now, configured_ideal_step_time)
        breakdown = self._queries.breakdown(result) if include_badput_breakdown else {}
        return result.goodput, breakdown, result.max_step

    @serialized
    def get_job_goodput_interval(
        self, interval_start: datetime, interval_end: datetime
    ) -> tuple[float, UnproductiveTimeDict, int, float, int]:
        """Return goodput, breakdown, highest step, seconds and disruptions of a window.

        Goodput and breakdown are in per cent; the seconds are the time of the job in the window.

        Args:
            interval_start: Start of the window; without a time zone it is UTC.
            interval_end: End of the window, later than its start.

        Raises:
            ValueError: A bound is missing, the window is empty, or the job did not run in it.
            TypeError: A bound is not a datetime.
        """
        now = self._now()
        result = self._queries.interval(*window(interval_start, interval_end), now)
        return result.goodput, self._queries.breakdown(result), result.max_step, result.elapsed, result.disruptions

    @serialized
    def get_job_goodput_with_exclusions(  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        self,
        exclusion_intervals: Sequence[tuple[datetime, datetime]],
        include_badput_breakdown: bool = False,
        configured_ideal_step_time: float | None = None,
    ) -> tuple[float, UnproductiveTimeDict, int, float]:
        """Return goodput, breakdown, highest step and excluded seconds.

        Goodput and breakdown are in per cent of the time outside the intervals, which need a time zone. If the
        intervals cover the whole job, the result is `(0.0, {}, highest step, excluded seconds)`.
        """
        now = self._now()
        result = self._queries.excluding(normalize_intervals(exclusion_intervals), now)
        if not result.elapsed:
            return 0.0, {}, result.max_step, result.excluded
        self._last_query = _LastQuery(result, now, configured_ideal_step_time)
        breakdown = self._queries.breakdown(result) if include_badput_breakdown else {}
        return result.goodput, breakdown, result.max_step, result.excluded

    @serialized
    def get_step_deviation(self, configured_ideal_step_time: float | None = None) -> dict[int, float]:
        """Return by how many seconds each step differs from the ideal step time.

        A configured ideal step time, in seconds, replaces the computed one.

        Raises:
            ValueError: No step has ended, or the steps have no ideal step time.
        """
        steps = self._queries.steps(self._now())
        if not steps.durations:
            raise ValueError(f"no step times: {self._source.name} has no step that ended")
        ideal = steps.ideal if configured_ideal_step_time is None else configured_ideal_step_time
        if ideal is None:
            raise ValueError("no ideal step time can be computed from these steps; pass configured_ideal_step_time")
        return steps.deviations(ideal)

    @serialized
    def get_job_goodput_details(self) -> WorkloadMetricDetails:
        """Return the last query of the whole job in seconds.

        Before any query, maps are empty and numbers are 0.
        """
        if self._last_query is None:
            return empty_details()
        result, now, ideal = self._last_query
        return job_details(result, self._queries.steps(now), ideal)

    @serialized
    def get_interval_metric_details(
        self, interval_start: datetime, interval_end: datetime
    ) -> IntervalWorkloadMetricDetails:
        """Return goodput and badput of a window in per cent, and its whole seconds.

        Both maps are empty if the job did not run in the window.
        """
        details: IntervalWorkloadMetricDetails = {"interval_goodput": {}, "interval_badput": {}, "interval_size": 0}
        try:
            start, end = window(interval_start, interval_end)
            details["interval_size"] = int(end - start)
            goodput, badput, *_ = self.get_job_goodput_interval(interval_start, interval_end)
        except ValueError:
            return details
        return {**details, "interval_goodput": {GoodputType.TOTAL: goodput}, "interval_badput": badput}

    @serialized
    def report(
        self,
        *,
        windows_s: Sequence[float] = (),
        exclude: Sequence[tuple[datetime, datetime]] = (),
        devices: float | None = None,
    ) -> GoodputReport:
        """Return buckets, attempts, disruptions, windows and step times of the run.

        Args:
            windows_s: Sizes of sliding windows that end now, in seconds.
            exclude: Intervals to exclude, as pairs of datetimes with a time zone.
            devices: Devices of all workers together, also if one controller records for all.
        """
        intervals = normalize_intervals(exclude)
        return self._queries.report(self._now(), windows_s=windows_s, exclude=intervals, devices=devices)

    @serialized
    def sync_to_gcs(self) -> None:
        """Store the history below `gcs_path`, for other machines; never raises."""
        self._source.sync()

    def _now(self) -> float:
        return posix_now(self._clock)
