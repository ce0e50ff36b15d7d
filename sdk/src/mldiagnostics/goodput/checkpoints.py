"""Checkpoints that Orbax logged, one by one: which entries are of one save or restore, and what they say; pure.

Several hosts log one save: their entries are one as long as they overlap. The same step saved again later, after a
restart, is another.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["RESTORE", "SAVE", "DurationStats", "OperationTiming", "number", "operations", "spread"]


class OperationTiming(NamedTuple):
    """Which keys say when an operation began and for how many seconds it blocked training."""

    start: str
    duration: str


SAVE = OperationTiming("checkpoint_manager_blocking_start_time", "checkpoint_manager_blocking_duration_secs")
RESTORE = OperationTiming("checkpoint_manager_start_time", "checkpoint_manager_duration_secs")


class DurationStats(NamedTuple):
    """Figures of one quantity over operations, in seconds; all are 0.0 without any."""

    total: float = 0.0
    average: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    standard_deviation: float = 0.0
    """Of a sample; 0.0 for fewer than two operations."""


def operations(entries: Iterable[Mapping[str, Any]], timing: OperationTiming) -> list[list[Mapping[str, Any]]]:
    """Return entries by operation: those of one step and place whose times overlap."""
    places: dict[tuple[object, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        places[str(entry.get("step")), str(entry.get("directory")).startswith("gs://")].append(entry)
    return [operation for place in places.values() for operation in _overlapping(place, timing)]


def spread(groups: Iterable[Sequence[Mapping[str, Any]]], key: str, *, zeros: bool = True) -> DurationStats:
    """Return the figures of the value at `key`, which of one operation is the mean of what its entries tell.

    Null values are none, and neither is 0 unless `zeros`.
    """
    told = ([value for entry in each if (value := number(entry.get(key))) is not None] for each in groups)
    counted = ([value for value in values if value or zeros] for values in told)
    means = [fmean(values) for values in counted if values]
    if not means:
        return DurationStats()
    return DurationStats(sum(means), fmean(means), min(means), max(means), stdev(means) if len(means) > 1 else 0.0)


def number(value: object) -> float | None:
    """Return a number as it is, and None for anything else."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value else None  # noqa: PLR0124 - NaN is no number


def _overlapping(entries: Iterable[Mapping[str, Any]], timing: OperationTiming) -> Iterator[list[Mapping[str, Any]]]:
    group: list[Mapping[str, Any]] = []
    until = 0.0
    for entry in sorted(entries, key=lambda entry: number(entry.get(timing.start)) or 0.0):
        start = number(entry.get(timing.start)) or 0.0
        if group and start > until:
            yield group
            group = []
        group.append(entry)
        until = max(until, start + (number(entry.get(timing.duration)) or 0.0))
    if group:
        yield group
