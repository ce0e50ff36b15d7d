"""Everything that is told of a job in one typed object: shares from 0 to 1, times in seconds; pure.

Names that end in `_s` are lengths of time; `start`, `end`, `now` and other moments are POSIX seconds. A figure that
cannot be known yet is None.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `from_json` reads the annotations
from dataclasses import dataclass, field

__all__ = [
    "AttemptReport",
    "CheckpointStats",
    "DisruptionReport",
    "FailureStats",
    "GoodputReport",
    "Hang",
    "LostWork",
    "Queueing",
    "RecoveryPhases",
    "StepStats",
    "TimeBreakdown",
]


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """A stretch of the job's life, divided: productive time and all buckets are `elapsed_s`, to the microsecond."""

    start: float
    """As asked for, within the life of the job."""
    end: float
    """The same."""
    elapsed_s: float
    """From `start` to `end`, without what was excluded."""
    excluded_s: float
    """What was taken out."""
    productive_s: float
    """Steps whose work was kept."""
    goodput: float | None
    """Productive by elapsed time."""
    unproductive_s: Mapping[str, float]
    """Bucket -> seconds, the largest first; types of custom events as `CUSTOM_BADPUT_EVENTS.<TYPE>`."""
    data_loading_async_s: float
    """Data loading that ran beside steps; in no sum."""
    input_bound: float | None
    """Share of the elapsed time in which the job did nothing but wait for data (DATA_LOADING_SYNC)."""
    disruptions: int
    """Those whose restart lies in the stretch."""
    max_step: int | None
    """Highest step that is done and not lost."""
    last_step: int | None
    """Step that began last."""
    window_s: float | None = None
    """Length of the sliding window that was asked for."""


@dataclass(frozen=True, slots=True)
class RecoveryPhases:
    """A recovery, or the mean of several, by what was waited for; they sum to `total_s`."""

    total_s: float
    """From the loss to the start of the first step, and the startup within that; or to now."""
    detect_s: float
    """From where the old attempt's work ends to its last sign of life."""
    reschedule_s: float
    """From there to the next attempt's start."""
    init_s: float
    """Device initialisation, training preparation, re-initialisation."""
    restore_s: float
    """Reading a checkpoint."""
    first_step_s: float
    """Compilation: what was told of it since the start, and what the first step took longer than a usual one."""
    rest_s: float
    """Between the start and the first step, and in no other phase."""


@dataclass(frozen=True, slots=True)
class DisruptionReport:
    """One loss of the job and its recovery."""

    lost: float
    """Where the old attempt's account ends."""
    restarted: float
    """Begin of the next attempt."""
    resumed: float | None
    """Start of the next attempt's first step, None while there is none."""
    starts: int
    """Job starts since the last step before it: each but the last came to no step."""
    cause: str
    """As it was told, else `slice_down` or `scale_up` of an elastic job, else `unknown`."""
    steps_lost: int
    """How many steps had to be done again."""
    wasted_s: float
    """Time of the steps that had to be done again."""
    recovery: RecoveryPhases
    """How long it took, and what for."""


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """What one attempt did; its stretch ends where the next one begins."""

    number: int
    """From 0."""
    first_step: int | None
    """None without a step."""
    last_step: int | None
    """The one that began last."""
    stretch: TimeBreakdown
    """Where its time went."""
    ended_by: str | None
    """Cause of the disruption that ended it, None if none did."""


@dataclass(frozen=True, slots=True)
class FailureStats:
    """How often the job fails, and how long it then takes to go on."""

    count: int
    """Disruptions that were not planned: all but those to grow (cause `scale_up`)."""
    by_cause: Mapping[str, int]
    """All disruptions."""
    operating_s: float
    """Elapsed time without recoveries; the running attempt counts."""
    mttf_s: float | None
    """Operating time by failures."""
    mttf_device_s: float | None
    """The same by device: what to divide by another number of devices for a projection to it."""
    recovery: RecoveryPhases | None
    """Mean of the recoveries that are over (`total_s` is the MTTR)."""


@dataclass(frozen=True, slots=True)
class LostWork:
    """What disruptions cost."""

    wasted_s: float
    """Steps that had to be done again."""
    recovery_s: float
    """All recoveries, the slow first steps after restarts among them."""
    total_s: float
    """Both."""
    device_hours: float | None
    """The total for all devices, None if their number was not told."""


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """What saving costs, and how often it pays at the failures seen. Intervals are from save to save."""

    saves: int
    """How often saving blocked training."""
    cost_s: float | None
    """Mean time that one save blocked training."""
    interval_s: float | None
    """Median time between the starts of two saves."""
    young_s: float | None
    """Optimal time between two saves, first order (Young 1974)."""
    daly_s: float | None
    """Optimal work between the end of a save and the next, to a higher order (Daly 2006): the one to use."""
    overhead: float | None
    """Share of time lost to saves and to steps done again, expected at the interval seen; above 1 it cannot keep up."""
    best_overhead: float | None
    """The least that could be expected: at Young's interval."""


@dataclass(frozen=True, slots=True)
class StepStats:
    """Durations of the steps that count, without events inside them."""

    count: int
    """Steps that are done and not lost, and that another one follows."""
    ideal_s: float | None
    """What a step takes when nothing is wrong: as told, else the mean of all up to median + 3 MAD."""
    median_s: float | None
    """The 50th percentile."""
    p99_s: float | None
    """The 99th percentile."""
    longest_s: float | None
    """The longest."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Whether the open step takes longer than can be explained."""

    suspected: bool
    """Whether `age_s` is above `allowed_s`."""
    step: int | None
    """The open step, None without one."""
    age_s: float | None
    """Time since the open step began, without the events in it: an evaluation is no hang."""
    allowed_s: float | None
    """What would still be believed; None without steps to compare with."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """The job as seen by who waited for it, from its creation on."""

    created: float
    """When the job was asked for."""
    queued_s: float
    """From creation to the first job start."""
    scheduling_goodput: float | None
    """Time with all resources at hand by time since creation."""
    ettr: float | None
    """Productive time by time since creation."""


@dataclass(frozen=True, slots=True)
class GoodputReport:
    """One run of one job as of `now`."""

    name: str
    """What was read."""
    job: str
    """Name of the job, empty if it is not known."""
    run: str
    """Which of the runs known it tells of."""
    runs: tuple[str, ...]
    """All runs under this name, the oldest first."""
    now: float
    """As of when."""
    started: float
    """Where the account begins: with the first job start."""
    start_told: bool
    """Whether the log has a job start; if not, the account begins with the first event."""
    ended: float | None
    """Recorded end, None while there is none."""
    devices: float | None
    """How many devices all workers have together, if it was told."""
    cumulative: TimeBreakdown
    """The whole life of the job so far."""
    since_resume: TimeBreakdown
    """From the last restart on."""
    windows: tuple[TimeBreakdown, ...]
    """Sliding windows up to now (or to the end), as asked for."""
    attempts: tuple[AttemptReport, ...]
    """The oldest first."""
    disruptions: tuple[DisruptionReport, ...]
    """The oldest first."""
    ettr: float | None
    """Productive by wall-clock time; exclusions change neither."""
    failures: FailureStats
    """How often it fails."""
    lost_work: LostWork
    """What disruptions cost."""
    checkpoints: CheckpointStats
    """What saving costs, and how often it pays."""
    steps: StepStats
    """How long steps take."""
    hang: Hang
    """Whether the running step takes too long."""
    stepping_slice_efficiency: float | None
    """Share of its slices that an elastic job trained with."""
    available_slice_efficiency: float | None
    """Share of its slices that were there."""
    queueing: Queueing | None
    """None unless the creation of the job was told."""
    ignored: Mapping[str, int]
    """What the log said and the account does not believe: reason -> how often."""
    corrected: Mapping[str, int] = field(default_factory=dict)
    """Events at another moment than the log says, as the clock of their host was set: by how much -> how many."""
    stopped: str = ""
    """Why the account ends at `now` without a recorded end: the reason in the run's own record, such as `Lost`."""
