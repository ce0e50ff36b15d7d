"""Seconds that checkpoints took, as ml-goodput-measurement 0.2.3 counts them: the mean of each step's entries; pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["restore_seconds", "save_seconds"]


def save_seconds(entries: Iterable[Mapping[str, Any]]) -> float:
    """Return how long saves blocked training. Raises TypeError or AttributeError for null values, as the peer does."""
    return _sum_of_means(entries, {"save"}, "checkpoint_manager_blocking_duration_secs")


def restore_seconds(entries: Iterable[Mapping[str, Any]]) -> float:
    """Return how long restores took. Raises TypeError or AttributeError for null values, as the peer does."""
    return _sum_of_means(entries, {"restore", "emergency_restore"}, "checkpoint_manager_duration_secs")


def _sum_of_means(entries: Iterable[Mapping[str, Any]], kinds: Collection[str], key: str) -> float:
    groups: dict[tuple[Any, bool], list[float]] = defaultdict(list)
    for entry in entries:
        if entry.get("event_type") in kinds:
            groups[entry["step"], entry["directory"].startswith("gs://")].append(entry[key])
    return sum((sum(group) / len(group) for group in groups.values()), 0.0)
