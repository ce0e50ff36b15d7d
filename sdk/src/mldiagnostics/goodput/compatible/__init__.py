"""Accounting as ml-goodput-measurement 0.2.3 does it, faults included, for figures to compare with.

Each query divides all entries anew, in the order in which the log gives them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from mldiagnostics.goodput.accounting import StepSeries
from mldiagnostics.goodput.answer import BASE, ELASTIC, GoodputResult, Unproductive, nothing_in
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.compatible.elastic import add_elastic, slice_efficiencies
from mldiagnostics.goodput.compatible.excluding import divide_excluding
from mldiagnostics.goodput.compatible.passing import divide
from mldiagnostics.goodput.compatible.steps import ideal_of, step_times_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Compatible", "Entries"]


class Entries(Protocol):
    """A log's payloads in the order in which they came."""

    def between(self, start: float | None, end: float) -> Sequence[Mapping[str, Any]]:
        """Return those logged after `start` and not after `end`, in POSIX seconds."""


class Compatible:
    """Answers from a log's entries; `elastic` adds the buckets of elastic jobs."""

    def __init__(self, entries: Entries, *, elastic: bool) -> None:
        self._entries = entries
        self._elastic = elastic
        self._nothing = nothing_in(BASE + ELASTIC if elastic else BASE)

    def cumulative(self, now: float) -> GoodputResult:
        """Return the account of the whole job. Raises ValueError as the peer does."""
        entries = self._entries.between(None, now)
        elapsed = _life(entries, now)[1]
        if not elapsed:
            raise ValueError("total job time is 0: the log has no job start that lies before its end")
        return self._divided(entries, elapsed)

    def interval(self, start: float, end: float, now: float) -> GoodputResult:  # noqa: ARG002 - the log ends with the window
        """Return the account of what was logged in a window. Raises ValueError as the peer does."""
        entries = [entry for entry in self._entries.between(start, end) if (_logged(entry) or 0.0) > start]
        if not entries:
            raise ValueError("no entries in the window: ask for one in which the job ran")
        since, until = max(start, _logged(entries[0]) or 0.0), min(end, _logged(entries[-1]) or 0.0)
        if since >= until:
            raise ValueError("the entries in the window span no time: ask for a longer one")
        return self._divided(entries, until - since)

    def excluding(self, windows: Sequence[tuple[float, float]], now: float) -> GoodputResult:
        """Return the account of the job without what entries tell of the time in windows."""
        entries = self._entries.between(None, now)
        found = divide_excluding(entries, windows)
        elapsed = max(0.0, _life(entries, now)[1] - found.excluded)
        answer = GoodputResult(
            found.productive, elapsed, found.unproductive, found.max_step, found.disruptions, excluded=found.excluded
        )
        return _with_other(answer)

    def breakdown(self, answer: GoodputResult) -> Unproductive:
        """Return the buckets in per cent; one that is as long as the job is told as 0."""

        def share(seconds: float) -> float:
            return seconds / answer.elapsed * 100 if 0 < seconds < answer.elapsed else 0.0

        return {
            bucket: {kind: share(each) for kind, each in spent.items()} if isinstance(spent, dict) else share(spent)
            for bucket, spent in {**self._nothing, **answer.unproductive}.items()
        }

    def steps(self, now: float) -> StepSeries:
        """Return the time from each step to the next."""
        durations = step_times_of(self._entries.between(None, now))
        return StepSeries(list(durations), list(durations.values()), ideal_of(durations.values()))

    def slices(self, now: float, window: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return which shares of the slices stepped, and could; None without any record."""
        entries = self._entries.between(None, now)
        start, elapsed = _life(entries, now)
        return slice_efficiencies(entries, *(window or (start, start + elapsed)))

    def _divided(self, entries: Sequence[Mapping[str, Any]], elapsed: float) -> GoodputResult:
        found = divide(entries)
        if not 0 <= found.productive <= elapsed:
            raise ValueError(f"productive time {found.productive} s is not within the job's {elapsed} s")
        if self._elastic:
            add_elastic(found.unproductive, entries)
        within = {bucket: _within(spent, elapsed) for bucket, spent in found.unproductive.items()}
        return _with_other(GoodputResult(found.productive, elapsed, within, found.max_step, found.disruptions))


def _life(entries: Sequence[Mapping[str, Any]], now: float) -> tuple[float, float]:
    """Return when the job started first, and the seconds from then to its last end, or to now."""
    starts = [entry["job_start_time"] for entry in entries if "job_start_time" in entry]
    ends = [entry["job_end_time"] for entry in entries if "job_end_time" in entry]
    return (starts[0], (ends[-1] if ends else now) - starts[0]) if starts else (0.0, 0.0)


def _logged(entry: Mapping[str, Any]) -> float | None:
    """Return the value of the first key that has `time` in it, whatever it says."""
    key = next((key for key in entry if "time" in key), None)
    return datetime.fromtimestamp(entry[key], timezone.utc).timestamp() if key else None


def _within(spent: float | dict[str, float], elapsed: float) -> float | dict[str, float]:
    """Take what cannot be for nothing."""
    if isinstance(spent, dict):
        return {kind: each if 0 <= each <= elapsed else 0.0 for kind, each in spent.items()}
    return spent if 0 <= spent <= elapsed else 0.0


def _with_other(answer: GoodputResult) -> GoodputResult:
    custom = answer.unproductive.get(BadputType.CUSTOM_BADPUT_EVENTS, {})
    known = sum(custom.values()) if isinstance(custom, dict) else 0.0
    for bucket, spent in answer.unproductive.items():
        if bucket is not BadputType.DATA_LOADING_ASYNC and not isinstance(spent, dict):
            known += spent
    answer.unproductive[BadputType.OTHER] = max(0.0, answer.elapsed - answer.productive - known)
    return answer
