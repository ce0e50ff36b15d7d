"""Observations of a monitor at one moment, from a ledger; pure.

There are three kinds, one per uploader: the whole job so far, its steps, and rolling windows. Times are microseconds.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.queries.ideal import compute_step_deviation_from_baseline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.goodput.account import Account, StepTimes
    from mldiagnostics.goodput.report.view import RunView


_SECOND = 1_000_000
_PIECE = 8192
_RECENT = 1100
"""Number of last steps for the deviation of all steps."""

_ALWAYS = tuple(
    Bucket(bucket)
    for bucket in BadputType
    if bucket is not BadputType.CUSTOM_BADPUT_EVENTS and not bucket.name.startswith(("DATA_LOADING_ASYNC", "ELASTIC_"))
)


@dataclass(frozen=True, slots=True)
class CumulativeObservation:
    """The whole job so far; `slices` are set for elastic jobs only."""

    at: int
    account: Account
    ideal_step_time: int | None
    deviation: int | None
    slices: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class StepDeviations:
    """Deviations from the ideal step time: of steps not exported yet, and of all."""

    at: int
    steps: Sequence[int]
    deviations: Sequence[int]
    deviation: int | None


@dataclass(frozen=True, slots=True)
class WindowObservation:
    """The last `seconds` of the job; `known` are the buckets of the whole job."""

    seconds: int
    account: Account
    known: tuple[Bucket, ...]
    slices: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class RollingObservation:
    """Several windows that end now."""

    at: int
    windows: tuple[WindowObservation, ...]


class MetricPoint(NamedTuple):
    """One number with the name and labels of a destination."""

    name: str
    value: float
    labels: Mapping[str, str] = {}
    step: int | None = None


Observation: TypeAlias = "CumulativeObservation | StepDeviations | RollingObservation"


def observe(view: RunView, now: int, *, ideal: int | None = None, slices: bool = False) -> CumulativeObservation:
    """Return the observation of the whole job; `ideal` overrides the ideal step time."""
    account, times = view.account(now), view.step_times(now)
    ideal = ideal if ideal is not None else view.ideal_step_time(now)
    efficiencies = view.slices(now, account.start, account.end) if slices else None
    return CumulativeObservation(now, account, ideal, _deviation(times, ideal), efficiencies)


class ExportedSteps:
    """The step times of earlier observations, to find those that are new."""

    def __init__(self, times: StepTimes | None = None) -> None:
        self._steps, self._durations = array("i"), array("q")
        if times is not None:
            self.add(times)

    def add(self, times: StepTimes) -> int:
        """Add all step times; return the index of the first new or changed one."""
        first = self._first_difference(times)
        del self._steps[first:], self._durations[first:]
        self._steps.extend(times.steps[first:])
        self._durations.extend(times.durations[first:])
        return first

    def _first_difference(self, times: StepTimes) -> int:
        """Return the first index at which two step times differ.

        They are compared in pieces, as copies of the whole would take new memory from the system each time.
        """
        size = min(len(self._steps), len(times.steps))
        for start in range(0, size, _PIECE):
            stop = min(start + _PIECE, size)
            if not self._is_same(times, start, stop):
                break
        else:
            return size
        while stop - start > 1:
            middle = (start + stop) // 2
            start, stop = (middle, stop) if self._is_same(times, start, middle) else (start, middle)
        return start

    def _is_same(self, times: StepTimes, start: int, stop: int) -> bool:
        return _bytes(self._steps, start, stop) == _bytes(times.steps, start, stop) and (
            _bytes(self._durations, start, stop) == _bytes(times.durations, start, stop)
        )


def _bytes(numbers: array[int], start: int, stop: int) -> bytes:
    """Return a piece as bytes, which Python compares ten times faster than numbers."""
    return memoryview(numbers)[start:stop].tobytes()


def observe_steps(view: RunView, now: int, *, exported: ExportedSteps, ideal: int | None = None) -> StepDeviations:
    """Return deviations of steps that are not exported yet.

    They are added to those that are.
    """
    times = view.step_times(now)
    ideal = ideal if ideal is not None else view.ideal_step_time(now)
    if ideal is None:
        return StepDeviations(now, (), (), None)
    new = exported.add(times)
    deviations = [abs(duration - ideal) for duration in times.durations[new:]]
    return StepDeviations(now, times.steps[new:], deviations, _deviation(times, ideal))


def observe_windows(view: RunView, now: int, sizes_s: Sequence[int], *, slices: bool = False) -> RollingObservation:
    """Return the observation of rolling windows with these sizes in seconds."""
    known = tuple(view.account(now).unproductive)

    def window(seconds: int) -> WindowObservation:
        account = view.account(now, start=now - seconds * _SECOND, end=now)
        efficiencies = view.slices(now, account.start, account.end) if slices else None
        return WindowObservation(seconds, account, known, efficiencies)

    return RollingObservation(now, tuple(window(seconds) for seconds in sizes_s))


def buckets(account: Account, known: Sequence[Bucket] = ()) -> Iterator[tuple[Bucket, int]]:
    """Yield the standard buckets, `known` ones and the account's, with their times.

    A bucket that was exported once is always exported, also with 0: destinations keep the last value.
    """
    spent: Mapping[Bucket, int] = account.unproductive
    for bucket in dict.fromkeys((*_ALWAYS, *known, *spent)):
        yield bucket, spent.get(bucket, 0)


def percent(part: int, account: Account) -> float:
    """Return a time in percent of the account's elapsed time."""
    return 100.0 * part / account.elapsed if account.elapsed else 0.0


def _deviation(times: StepTimes, ideal: int | None) -> int | None:
    if ideal is None or not times.durations:
        return None
    recent = times.durations[-_RECENT:]
    return round(compute_step_deviation_from_baseline({number: each - ideal for number, each in enumerate(recent)}))
