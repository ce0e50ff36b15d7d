"""The types of the goodput report; pure.

Shares are from 0 to 1. Names that end in `_s` are durations in seconds; `start`, `end`, `now` and other times are POSIX
seconds. None means unknown.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `from_json` reads the annotations
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """A window, divided into productive time and buckets that add up to `elapsed_s`."""

    start: float
    """Start of the window, within the run."""
    end: float
    """End of the window, within the run."""
    elapsed_s: float
    """From `start` to `end`, without excluded time."""
    excluded_s: float
    """Excluded time."""
    productive_s: float
    """Time of steps whose work was kept."""
    goodput: float | None
    """Productive time / elapsed time."""
    unproductive_s: Mapping[str, float]
    """Seconds by bucket, largest first; custom events as `CUSTOM_BADPUT_EVENTS.<TYPE>`."""
    data_loading_async_s: float
    """Data loading that ran in parallel with steps; not part of any sum."""
    input_bound: float | None
    """Share of the elapsed time in which the job waited for data (DATA_LOADING_SYNC)."""
    disruptions: int
    """Disruptions whose restart is in the window."""
    max_step: int | None
    """Highest step that is done and not lost."""
    last_step: int | None
    """Step that started last."""
    window_s: float | None = None
    """Requested length of a sliding window."""


@dataclass(frozen=True, slots=True)
class RecoveryPhases:
    """The phases of a recovery, or of the mean of several; they add up to `total_s`."""

    total_s: float
    """From the loss to the start of the next first step plus its startup, or to now."""
    detect_s: float
    """From the end of the old attempt's work to its last event."""
    reschedule_s: float
    """From the last event to the start of the next attempt."""
    init_s: float
    """Device initialisation, training preparation, re-initialisation."""
    restore_s: float
    """Reading a checkpoint."""
    first_step_s: float
    """Compilation: recorded program startup, and the first step's time beyond that of other steps."""
    rest_s: float
    """Other time between the start and the first step."""


@dataclass(frozen=True, slots=True)
class DisruptionReport:
    """One disruption and its recovery."""

    lost: float
    """End of the old attempt's work."""
    restarted: float
    """Begin of the next attempt."""
    resumed: float | None
    """Start of the next attempt's first step; None before it."""
    starts: int
    """Job starts since the last step: all but the last had no step."""
    cause: str
    """Cause that the cluster shows, such as `node lost`, or recorded cause, else `slice_down` or `scale_up` of an
    elastic job, else `unknown`."""
    steps_lost: int
    """Number of done steps that had to be repeated."""
    wasted_s: float
    """Time of the steps that had to be repeated."""
    recovery: RecoveryPhases
    """Duration of the recovery by phase."""
    message: str = ""
    """Object of the cluster that shows the cause, and its words; empty without one."""


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One attempt; its `stretch` ends where the next attempt begins."""

    number: int
    """Number of the attempt, from 0."""
    first_step: int | None
    """First step; None without one."""
    last_step: int | None
    """Step that started last."""
    stretch: TimeBreakdown
    """Time of the attempt."""
    ended_by: str | None
    """Cause of the disruption that ended it; None without one."""


@dataclass(frozen=True, slots=True)
class FailureStats:
    """Number of failures, time to failure and time to recover."""

    count: int
    """Unplanned disruptions: all but those with cause `scale_up` or `suspended`."""
    by_cause: Mapping[str, int]
    """Number of all disruptions by cause."""
    operating_s: float
    """Elapsed time without recoveries, with the running attempt."""
    mttf_s: float | None
    """Operating time / failures."""
    mttf_device_s: float | None
    """MTTF x devices; divide it by another number of devices to project the MTTF."""
    recovery: RecoveryPhases | None
    """Mean of the finished recoveries (`total_s` is the MTTR)."""


@dataclass(frozen=True, slots=True)
class LostWork:
    """Cost of the disruptions."""

    wasted_s: float
    """Time of steps that had to be repeated."""
    recovery_s: float
    """Time of all recoveries, with the startup in first steps."""
    total_s: float
    """`wasted_s` + `recovery_s`."""
    device_hours: float | None
    """The total for all devices; None if their number is unknown."""


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """Cost of checkpoint saves, and their best interval at the failures so far.

    Intervals are from save to save.
    """

    saves: int
    """Number of saves that blocked training."""
    cost_s: float | None
    """Mean time that one save blocked training."""
    interval_s: float | None
    """Median time between the starts of two saves."""
    young_s: float | None
    """Optimal time between two saves, first order (Young 1974)."""
    daly_s: float | None
    """Optimal work between the end of a save and the next one, higher order (Daly 2006). Use this."""
    overhead: float | None
    """Expected share of time lost to saves and repeated steps at `interval_s`; above 1 no progress is possible."""
    best_overhead: float | None
    """The least expected share: at Young's interval."""


@dataclass(frozen=True, slots=True)
class StepStats:
    """Durations of surviving steps, without events inside them."""

    count: int
    """Number of surviving steps that another step follows."""
    ideal_s: float | None
    """Ideal step time: as configured, else the mean of the durations up to median + 3 MAD."""
    median_s: float | None
    """50th percentile."""
    p99_s: float | None
    """99th percentile."""
    longest_s: float | None
    """Longest duration."""
    done: int | None = None
    """Number of steps that are done and not lost, also those that no step follows."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Detection of a hanging step."""

    suspected: bool
    """Whether `age_s` is above `allowed_s`."""
    step: int | None
    """The open step; None without one."""
    age_s: float | None
    """Time since the open step started, without events such as an evaluation."""
    allowed_s: float | None
    """Longest age without suspicion; None with too few steps to compare with."""


@dataclass(frozen=True, slots=True)
class Queueing:
    """Figures from the creation of the job on."""

    created: float
    """Creation of the job."""
    queued_s: float
    """From creation to the first job start."""
    scheduling_goodput: float | None
    """Time with all resources available / time since creation."""
    ettr: float | None
    """Productive time / time since creation."""


@dataclass(frozen=True, slots=True)
class GoodputReport:
    """One run of one job as of `now`."""

    name: str
    """Name of the log."""
    job: str
    """Name of the job; empty if unknown."""
    run: str
    """Id of the run."""
    runs: tuple[str, ...]
    """Ids of all runs in the log, oldest first."""
    now: float
    """Query time."""
    started: float
    """Begin of the account: the first job start."""
    start_told: bool
    """Whether the log has a job start; if not, the account begins with the first event."""
    ended: float | None
    """Recorded end; None without one."""
    devices: float | None
    """Number of devices of all workers together; None if unknown."""
    cumulative: TimeBreakdown
    """The whole run so far."""
    since_resume: TimeBreakdown
    """From the last restart on."""
    windows: tuple[TimeBreakdown, ...]
    """Requested sliding windows up to now; one without time of the run has no goodput."""
    attempts: tuple[AttemptReport, ...]
    """Oldest first."""
    disruptions: tuple[DisruptionReport, ...]
    """Oldest first."""
    ettr: float | None
    """Productive time / wall-clock time, without exclusions."""
    failures: FailureStats
    """Failures of the job."""
    lost_work: LostWork
    """Cost of the disruptions."""
    checkpoints: CheckpointStats
    """Checkpoint saves."""
    steps: StepStats
    """Step durations."""
    hang: Hang
    """Whether the running step hangs."""
    stepping_slice_efficiency: float | None
    """Mean share of slices with which an elastic job trained."""
    available_slice_efficiency: float | None
    """Mean share of slices that were available."""
    queueing: Queueing | None
    """Figures with queueing; None if the creation of the job is unknown."""
    ignored: Mapping[str, int]
    """Number of ignored events by reason."""
    corrected: Mapping[str, int] = field(default_factory=dict)
    """Number of events moved in time because the host's clock was set, by the shift."""
    start_up_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds of all start-ups by stage, as the cluster recorded them: `queueing`, `scheduling`, `pull` and `startup`;
    empty outside a cluster."""
    stopped: str = ""
    """Reason in the run's record why the run stopped without a recorded end, such as `Lost`."""
    failure: str = ""
    """Reason in the run's record why the run failed; empty if it has not failed, or the log has no such record."""
