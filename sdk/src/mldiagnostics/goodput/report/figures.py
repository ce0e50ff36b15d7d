"""Figures of reliability and cost, from accounts and disruptions; pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING

from mldiagnostics.goodput.report import reliability
from mldiagnostics.goodput.report.cluster_record import explained
from mldiagnostics.goodput.report.model import (
    CheckpointStats,
    FailureStats,
    LostWork,
    Queueing,
    RecoveryPhases,
    StepStats,
)
from mldiagnostics.goodput.report.numbers import percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.account import Account, Attempt, Disruption, StepTimes
    from mldiagnostics.goodput.report.cluster_record import ClusterRecord
    from mldiagnostics.goodput.report.view import RunView


PLANNED = frozenset({"scale_up", "suspended"})
"""Causes of disruptions that do not count as failures."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """Disruptions of a run, with the figures that follow from them."""

    disruptions: list[Disruption]
    failures: FailureStats
    queueing: Queueing | None
    """None if the creation of the job is not known."""
    ettr: float | None
    """Productive share of the time since the start of the job."""

    @property
    def ettr_with_queueing(self) -> float | None:
        """Productive share since the creation of the job, if known, else since its start."""
        return self.ettr if self.queueing is None else self.queueing.ettr


def reliability_of(
    view: RunView, now: int, cluster: ClusterRecord, *, created: int | None = None, devices: float | None = None
) -> Reliability:
    """Return the figures of a run as of `now`, in microseconds.

    The report of a run and the status of its MLRun have these.

    Args:
        view: the run.
        now: microseconds of POSIX time.
        cluster: start-up and causes that the cluster shows.
        created: creation of the job; by default that of the cluster, unless it is after the start.
        devices: number of devices of all workers together.
    """
    whole = view.account(now)
    if created is None and cluster.created is not None and cluster.created <= whole.start:
        created = cluster.created
    disruptions = explained(view.disruptions(now), cluster)
    return Reliability(
        disruptions=disruptions,
        failures=failures(whole, disruptions, devices),
        queueing=None if created is None else queueing(created, whole, disruptions),
        ettr=reliability.ettr(whole.productive, whole.end - whole.start),
    )


def mean_recovery(recoveries: Sequence[Disruption]) -> RecoveryPhases:
    """Return the mean of at least one recovery.

    `total_s` is the MTTR (IEC 60050-192-07-23, mean time to restoration).
    """

    def mean(lengths: Iterable[int]) -> float:
        return fmean(lengths) / 1e6

    return RecoveryPhases(
        total_s=mean(each.recovered for each in recoveries),
        detect_s=mean(each.detect for each in recoveries),
        reschedule_s=mean(each.reschedule for each in recoveries),
        init_s=mean(each.init for each in recoveries),
        restore_s=mean(each.restore for each in recoveries),
        first_step_s=mean(each.first_step for each in recoveries),
        rest_s=mean(map(_rest, recoveries)),
    )


def _rest(each: Disruption) -> int:
    return each.recovered - each.detect - each.reschedule - each.init - each.restore - each.first_step


def failures(whole: Account, disruptions: Sequence[Disruption], devices: float | None) -> FailureStats:
    """Return number, causes and mean times of failures."""
    count = sum(each.cause not in PLANNED for each in disruptions)
    operating_s = max(0, whole.end - whole.start - sum(each.recovered for each in disruptions)) / 1e6
    mttf_s = reliability.mean_time_to_failure(operating_s, count)
    finished = [each for each in disruptions if each.resumed is not None]
    return FailureStats(
        count=count,
        by_cause=dict(Counter(each.cause for each in disruptions).most_common()),
        operating_s=operating_s,
        mttf_s=mttf_s,
        mttf_device_s=mttf_s * devices if mttf_s is not None and devices is not None else None,
        recovery=mean_recovery(finished) if finished else None,
    )


def lost_work(disruptions: Sequence[Disruption], devices: float | None) -> LostWork:
    """Return the cost of the disruptions."""
    wasted_s = sum(each.wasted for each in disruptions) / 1e6
    recovery_s = sum(each.recovered for each in disruptions) / 1e6
    total_s = wasted_s + recovery_s
    return LostWork(
        wasted_s=wasted_s,
        recovery_s=recovery_s,
        total_s=total_s,
        device_hours=None if devices is None else total_s * devices / 3600,
    )


def checkpoints(saves: Sequence[tuple[int, int]], mttf_s: float | None) -> CheckpointStats:
    """Return cost and best interval of saves, given as intervals in microseconds."""
    cost_s = fmean(end - start for start, end in saves) / 1e6 if saves else None
    between = [(later[0] - earlier[0]) / 1e6 for earlier, later in pairwise(saves)]
    interval_s = median(between) if between else None
    if not cost_s or not mttf_s:
        return CheckpointStats(len(saves), cost_s, interval_s, None, None, None, None)
    young_s = reliability.young_interval(cost_s, mttf_s)
    return CheckpointStats(
        saves=len(saves),
        cost_s=cost_s,
        interval_s=interval_s,
        young_s=young_s,
        daly_s=reliability.daly_interval(cost_s, mttf_s),
        overhead=reliability.overhead(interval_s, cost_s, mttf_s) if interval_s else None,
        best_overhead=reliability.overhead(young_s, cost_s, mttf_s),
    )


def steps(times: StepTimes, ideal_s: float | None, attempts: Sequence[Attempt], max_step: int | None) -> StepStats:
    """Return the distribution of the durations of steps, and how many are done."""
    ordered = sorted(times.durations)
    following = [each.first_step for each in attempts[1:]] + [None if max_step is None else max_step + 1]
    unfollowed = {  # last steps of attempts, if they are done
        each.last_step
        for each, first in zip(attempts, following, strict=False)
        if each.last_step is not None and first is not None and each.last_step < first
    }
    return StepStats(
        count=len(ordered),
        ideal_s=ideal_s,
        median_s=percentile(ordered, 50) / 1e6 if ordered else None,
        p99_s=percentile(ordered, 99) / 1e6 if ordered else None,
        longest_s=ordered[-1] / 1e6 if ordered else None,
        done=len(set(times.steps) | unfollowed),
    )


def queueing(created: int, whole: Account, disruptions: Sequence[Disruption]) -> Queueing:
    """Return the figures since `created` (microseconds)."""
    wall = whole.end - created
    rescheduling = sum(each.reschedule for each in disruptions)
    return Queueing(
        created=created / 1e6,
        queued_s=(whole.start - created) / 1e6,
        scheduling_goodput=reliability.scheduling_goodput(whole.end - whole.start - rescheduling, wall),
        ettr=reliability.ettr(whole.productive, wall),
    )
