"""Orbax's log entries, grouped by save or restore; pure.

Several hosts log one save: entries of one step that overlap in time are one operation. The same step saved again after
a restart is another one.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.locations import is_bucket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class OperationTiming(NamedTuple):
    """Keys of the start of an operation and of the seconds it blocked training."""

    start: str
    duration: str


SAVE = OperationTiming("checkpoint_manager_blocking_start_time", "checkpoint_manager_blocking_duration_secs")
RESTORE = OperationTiming("checkpoint_manager_start_time", "checkpoint_manager_duration_secs")


class DurationStats(NamedTuple):
    """Statistics of one quantity over operations, in seconds; 0.0 without operations."""

    total: float = 0.0
    average: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    standard_deviation: float = 0.0
    """Of a sample; 0.0 for fewer than two operations."""


def operations(entries: Iterable[Mapping[str, Any]], timing: OperationTiming) -> list[list[Mapping[str, Any]]]:
    """Group entries by operation: same step, same kind of storage, overlapping times."""
    groups: dict[tuple[object, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        groups[str(entry.get("step")), is_bucket(str(entry.get("directory")))].append(entry)
    return [operation for group in groups.values() for operation in _overlapping(group, timing)]


def spread(groups: Iterable[Sequence[Mapping[str, Any]]], key: str, *, zeros: bool = True) -> DurationStats:
    """Return statistics of the value at `key`.

    The value of an operation is the mean of its entries. Null values do not count, and 0 only with `zeros`.
    """
    per_group = ([value for entry in each if (value := number(entry.get(key))) is not None] for each in groups)
    counted = ([value for value in values if value or zeros] for values in per_group)
    means = [fmean(values) for values in counted if values]
    if not means:
        return DurationStats()
    return DurationStats(sum(means), fmean(means), min(means), max(means), stdev(means) if len(means) > 1 else 0.0)


def number(value: object) -> float | None:
    """Return a number unchanged, None for any other value."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value else None  # noqa: PLR0124 - NaN is not a number


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
