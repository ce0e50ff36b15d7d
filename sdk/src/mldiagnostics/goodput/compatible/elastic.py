"""What elastic jobs wait for, as ml-goodput-measurement 0.2.3 counts it; pure."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.exclusion import get_exclusion_overlap, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mldiagnostics.goodput.answer import Unproductive

__all__ = ["add_elastic", "slice_efficiencies"]


def add_elastic(unproductive: Unproductive, entries: Sequence[Mapping[str, Any]]) -> None:
    """Add the elastic buckets; initialization and preparation lose what lies inside a re-initialization."""
    spent: dict[BadputType, float] = {}
    for kind, start, end in _waits(entries):
        bucket = BadputType.ELASTIC_SCALE_UP if "scale_up" in kind.lower() else BadputType.ELASTIC_SLICE_DOWN
        spent[bucket] = spent.get(bucket, 0.0) + end - start
    again = list(_spans(entries, "elastic_reinit"))
    if again:
        spent[BadputType.ELASTIC_REINITIALIZATION] = sum(end - start for start, end in again)
    unproductive.update(spent)
    for bucket, name in ((BadputType.TPU_INITIALIZATION, "tpu_init"), (BadputType.TRAINING_PREP, "training_prep")):
        inside = sum(get_exclusion_overlap(*span, merged(again)) for span in _spans(entries, name))
        seconds = unproductive.get(bucket, 0.0)
        if again and not isinstance(seconds, dict):
            unproductive[bucket] = max(0.0, seconds - inside)


def slice_efficiencies(entries: Iterable[Mapping[str, Any]], start: float, end: float) -> tuple[float, float] | None:
    """Return which share of the slices stepped between two moments, and which could; None without any record."""
    told = sorted((_told(entry) for entry in entries if "elastic_slice_counts_timestamp" in entry), key=itemgetter(0))
    if not told:
        return None
    known = [share for share in told if share[0] <= start]
    shares = [(start, *known[-1][1:])] if known else []
    shares += [share for share in told if start < share[0] < end]
    active = available = 0.0
    for (since, stepping, usable), (until, *_) in pairwise([*shares, (end, 0.0, 0.0)]):
        active += stepping * (until - since)
        available += usable * (until - since)
    return (active / (end - start), available / (end - start)) if end > start else (0.0, 0.0)


def _told(entry: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return when counts were told, and which shares of all slices stepped and could."""
    total = max(entry["total_slices"], 1)
    t = entry["elastic_slice_counts_timestamp"]
    return t, entry["active_slices"] / total, entry["available_slices"] / total


def _waits(entries: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float, float]]:
    begun: dict[str, float] = {}
    for entry in entries:
        kind = entry.get("elastic_wait_event_type", "")
        if "elastic_wait_start_time" in entry:
            begun[kind] = entry["elastic_wait_start_time"]
        elif "elastic_wait_end_time" in entry:
            start, end = begun.pop(kind, None), entry["elastic_wait_end_time"]
            if start is not None and start < end:
                yield kind, start, end


def _spans(entries: Iterable[Mapping[str, Any]], name: str) -> Iterator[tuple[float, float]]:
    begun: float | None = None
    for entry in entries:
        if f"{name}_start_time" in entry:
            begun = entry[f"{name}_start_time"]
        elif f"{name}_end_time" in entry and begun is not None:
            if begun < entry[f"{name}_end_time"]:
                yield begun, entry[f"{name}_end_time"]
            begun = None
