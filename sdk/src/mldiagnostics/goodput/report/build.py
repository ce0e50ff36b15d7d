"""`make_report`: the report of a run from its ledger, in microseconds; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.report import figures, hang, reliability
from mldiagnostics.goodput.report.cluster_record import NOTHING_RECORDED, ClusterRecord
from mldiagnostics.goodput.report.model import AttemptReport, DisruptionReport, GoodputReport, Hang, TimeBreakdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.goodput.account import Account, Attempt, Bucket, Disruption, StepTimes
    from mldiagnostics.goodput.report.view import RunView


SAVING = BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME


def make_report(
    view: RunView,
    *,
    now: int,
    windows_s: Sequence[float] = (),
    exclude: Sequence[tuple[int, int]] = (),
    devices: float | None = None,
    created: int | None = None,
    ideal_step_time_s: float | None = None,
    cluster: ClusterRecord = NOTHING_RECORDED,
    name: str = "",
    job: str = "",
    run: str = "",
    runs: Sequence[str] = (),
) -> GoodputReport:
    """Return the report of one run as of `now`.

    Exclusions shorten the time breakdowns; reliability and cost are those of the whole run.

    Args:
        view: the run, such as a ledger.
        now: microseconds of POSIX time.
        windows_s: lengths of sliding windows up to `now`, in seconds; only the time of the run in them counts.
        exclude: intervals to leave out, in microseconds of POSIX time.
        devices: number of devices of all workers together.
        created: creation of the job in microseconds of POSIX time, for queueing.
        ideal_step_time_s: ideal step time in seconds; derived from the steps without it.
        cluster: start-up and causes that the cluster shows. Its creation of the workload is that of the job, unless
            `created` is given or it is after the start of the job.
        name: name of the log.
        job: name of the job.
        run: id of the run.
        runs: ids of all runs of the log, oldest first.

    Raises:
        ConfigurationError: `created` is after the start of the job.
    """
    whole = view.account(now)
    _check_created(created, whole.start, name)
    losses = figures.reliability_of(view, now, cluster, created=created, devices=devices)
    disruptions, attempts = losses.disruptions, view.attempts(now)
    causes = {each.restarted: each.cause for each in disruptions}
    resumed = disruptions[-1].restarted if disruptions else whole.start
    efficiencies = view.slices(now, whole.start, whole.end)
    cumulative = breakdown(view.account(now, exclude=exclude) if exclude else whole)
    times = view.step_times(now)
    if ideal_step_time_s is None:
        ideal_step_time_s = _seconds(view.ideal_step_time(now))
    return GoodputReport(
        name=name,
        job=job,
        run=run,
        runs=tuple(runs),
        now=now / 1e6,
        started=whole.start / 1e6,
        start_told=view.started is not None and view.started <= now,
        ended=_seconds(view.ended(now)),
        devices=devices,
        cumulative=cumulative,
        since_resume=breakdown(view.account(now, start=resumed, exclude=exclude)),
        windows=tuple(_window(view, now, window, exclude) for window in windows_s),
        attempts=tuple(_attempt(view, now, attempt, exclude, causes) for attempt in attempts),
        disruptions=tuple(map(_disruption, disruptions)),
        ettr=losses.ettr,
        failures=losses.failures,
        lost_work=figures.lost_work(disruptions, devices),
        checkpoints=figures.checkpoints(view.spans(now, SAVING), losses.failures.mttf_s),
        steps=figures.steps(times, ideal_step_time_s, attempts, whole.max_step),
        hang=_hang(view, now, times, attempts, disruptions),
        stepping_slice_efficiency=efficiencies and efficiencies[0],
        available_slice_efficiency=efficiencies and efficiencies[1],
        queueing=losses.queueing,
        ignored=dict(sorted(view.ignored.items())),
        start_up_s=cluster.start_up_s,
    )


def _check_created(created: int | None, start: int, name: str) -> None:
    if created is not None and created > start:
        raise ConfigurationError(
            f"created={created / 1e6}: {(created - start) / 1e6} s after the start of {name or 'the job'} at "
            f"{start / 1e6}; pass an earlier time"
        )


def bucket_name(spent: Bucket) -> str:
    """Return the name of a bucket, with the type of a custom event after a dot."""
    return f"{spent.bucket.name}.{spent.custom}" if spent.custom else spent.bucket.name


def breakdown(account: Account, window_s: float | None = None) -> TimeBreakdown:
    """Return an account as a breakdown in seconds."""
    largest_first = sorted(
        account.unproductive.items(), key=lambda item: (-item[1], item[0].bucket.value, item[0].custom)
    )
    waiting_for_data = sum(
        length for spent, length in account.unproductive.items() if spent.bucket is BadputType.DATA_LOADING_SYNC
    )
    return TimeBreakdown(
        start=account.start / 1e6,
        end=account.end / 1e6,
        elapsed_s=account.elapsed / 1e6,
        excluded_s=account.excluded / 1e6,
        productive_s=account.productive / 1e6,
        goodput=reliability.ratio(account.productive, account.elapsed),
        unproductive_s={bucket_name(spent): length / 1e6 for spent, length in largest_first if length},
        data_loading_async_s=account.overlay / 1e6,
        input_bound=reliability.ratio(waiting_for_data, account.elapsed),
        disruptions=account.disruptions,
        max_step=account.max_step,
        last_step=account.last_step,
        window_s=window_s,
    )


def _window(view: RunView, now: int, length_s: float, exclude: Sequence[tuple[int, int]]) -> TimeBreakdown:
    account = view.account(now, start=now - round(length_s * 1e6), end=now, exclude=exclude)
    return breakdown(account, length_s)


def _attempt(
    view: RunView, now: int, attempt: Attempt, exclude: Sequence[tuple[int, int]], causes: Mapping[int, str]
) -> AttemptReport:
    account = view.account(now, start=attempt.start, end=attempt.end, exclude=exclude) if exclude else attempt.account
    return AttemptReport(
        number=attempt.number,
        first_step=attempt.first_step,
        last_step=attempt.last_step,
        stretch=breakdown(account),
        ended_by=causes.get(attempt.ended_by.restarted, attempt.ended_by.cause) if attempt.ended_by else None,
    )


def _disruption(disruption: Disruption) -> DisruptionReport:
    return DisruptionReport(
        lost=disruption.lost / 1e6,
        restarted=disruption.restarted / 1e6,
        resumed=_seconds(disruption.resumed),
        starts=disruption.starts,
        cause=disruption.cause,
        steps_lost=disruption.steps_lost,
        wasted_s=disruption.wasted / 1e6,
        recovery=figures.mean_recovery([disruption]),
        message=disruption.message,
    )


def _hang(
    view: RunView, now: int, times: StepTimes, attempts: Sequence[Attempt], disruptions: Sequence[Disruption]
) -> Hang:
    open_step = view.open_step(now)
    if open_step is None:
        return hang.assess(None, None, None)
    step, begin = open_step
    age = sum(  # without events: the running step is OTHER, events in it are not
        length
        for spent, length in view.account(now, start=begin, end=now).unproductive.items()
        if spent.bucket is BadputType.OTHER
    )
    allowed_s = hang.allowed(
        [duration / 1e6 for duration in times.durations[-hang.RECENT :]],
        first=bool(attempts) and attempts[-1].first_step == step,
        longest_startup_s=max((each.first_step for each in disruptions), default=0) / 1e6,
    )
    return hang.assess(step, age / 1e6, allowed_s)


def _seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1e6
