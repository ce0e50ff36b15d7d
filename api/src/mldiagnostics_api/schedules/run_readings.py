"""The readings of one run for triggers; all schedules of its namespace share them."""

from dataclasses import dataclass
from statistics import median

from mldiagnostics_api.runs.signals import FEWEST_HOSTS, FIRST_ACCOUNT_S
from mldiagnostics_api.schedules.trigger_sample import StepTimeWindows, TriggerSample
from mldiagnostics_api.schedules.triggers import TriggerType


@dataclass(frozen=True, slots=True)
class TriggerReading:
    """A trigger at one moment; the message is empty if it is not raised."""

    value: float | None
    """Higher is worse; None without data."""
    message: str = ""


_NO_DATA = TriggerReading(None)


class RunReadings:
    """A run as it was observed last, with the baseline of its step time.

    Example:
        readings = RunReadings()
        readings.observe(sample, now)
        reading = readings.read(TriggerType.STEP_TIME_RISE, 0.1)
    """

    __slots__ = ("_read", "_windows", "sample")

    def __init__(self) -> None:
        self.sample = TriggerSample()
        self._windows = StepTimeWindows()
        self._read: dict[tuple[TriggerType, float | None], TriggerReading] = {}

    def observe(self, sample: TriggerSample, now: float) -> None:
        """Add an observation; the caller makes one at each look."""
        self.sample = sample
        self._windows.observe(sample, now)
        self._read.clear()

    def read(self, kind: TriggerType, limit: float | None) -> TriggerReading:
        """Return the reading of a trigger with a limit; equal ones are computed once."""
        reading = self._read.get((kind, limit))
        if reading is None:
            reading = self._read[kind, limit] = self._reading(kind, limit)
        return reading

    def _reading(self, kind: TriggerType, limit: float | None) -> TriggerReading:
        if kind is TriggerType.STEP_TIME_RISE and limit is not None:
            rise = self._windows.baseline.rise(limit)
            return TriggerReading(rise, f"the step time is {rise:.0%} above its usual value" if rise else "")
        if kind is TriggerType.STEP_TIME_SPREAD and limit is not None:
            return _spread(self.sample, limit)
        if kind is TriggerType.GOODPUT_LOW and limit is not None:
            return _low_goodput(self.sample, limit)
        message = self.sample.signals.get(kind, "")
        return TriggerReading(1.0 if message else 0.0, message)


def _spread(run: TriggerSample, limit: float) -> TriggerReading:
    times = run.host_step_times
    if len(times) < FEWEST_HOSTS:
        return _NO_DATA
    slowest = max(times, key=lambda host: times[host])
    usual = median(times.values())
    spread = times[slowest] / usual - 1 if usual > 0 else 0.0
    message = f"the steps of {slowest} take {spread:.0%} longer than the median of {len(times)} hosts"
    return TriggerReading(spread, message if spread >= limit else "")


def _low_goodput(run: TriggerSample, limit: float) -> TriggerReading:
    if run.goodput is None or run.elapsed_s < FIRST_ACCOUNT_S:
        return _NO_DATA
    is_low = run.goodput < limit
    return TriggerReading(1 - run.goodput, f"the goodput is {run.goodput:.1%}, below {limit:.0%}" if is_low else "")
