"""Figures of a session out of the documents of XProf's tools; pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["OperationTime", "ProfileSummary", "summarize"]

_PARTS = {
    "deviceComputeTimeMs": "device compute",
    "deviceCollectivesTimeMs": "device collectives",
    "deviceToDeviceTimeMs": "device to device",
    "hostComputeTimeMs": "host compute",
    "kernelLaunchTimeMs": "kernel launch",
    "infeedTimeMs": "input",
    "outfeedTimeMs": "output",
    "compileTimeMs": "compilation",
    "otherTimeMs": "other",
}
"""Columns of the steps in XProf's overview, and the parts of a step that they measure."""


@dataclass(frozen=True, slots=True)
class OperationTime:
    """Time of one operation over the whole session."""

    name: str
    category: str
    occurrences: int
    seconds: float
    """Time in the operation itself, without those that it contains."""
    share: float
    """Of the time of all operations, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """Figures of a session. Times are seconds; None stands for figures that the traces do not have."""

    device: str
    steps: int
    step_time_s: float | None
    """Mean over the steps."""
    fastest_step_s: float | None
    slowest_step_s: float | None
    step_parts: Mapping[str, float]
    """Shares of the time of the steps, from 0 to 1; parts without time are left out."""
    bottleneck: str
    """XProf's conclusion."""
    operations: tuple[OperationTime, ...]
    """The operations, the longest first."""
    peak_memory_bytes: int | None
    """The largest of all devices and hosts."""

    @property
    def input_share(self) -> float | None:
        """The share of the steps that waits for input."""
        return self.step_parts.get("input", 0.0) if self.steps else None

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {
            "device": self.device or None,
            "steps": self.steps,
            "stepTimeSeconds": self.step_time_s,
            "fastestStepSeconds": self.fastest_step_s,
            "slowestStepSeconds": self.slowest_step_s,
            "stepParts": dict(self.step_parts),
            "inputShare": self.input_share,
            "bottleneck": self.bottleneck or None,
            "operations": [asdict(operation) for operation in self.operations],
            "peakMemoryBytes": self.peak_memory_bytes,
        }


def summarize(documents: Mapping[str, Any]) -> ProfileSummary:
    """Return the figures of the documents that the converter printed."""
    tables = [table for table in documents.get("overview_page") or [] if isinstance(table, dict)]
    properties: dict[str, Any] = {}
    for table in tables:
        properties |= table.get("p") or {}
    steps = [row for table in tables for row in _rows(table) if "stepTimeMs" in row]
    times = [_number(row["stepTimeMs"]) / 1e3 for row in steps]
    return ProfileSummary(
        device=str(properties.get("device_type") or ""),
        steps=len(steps),
        step_time_s=fmean(times) if times else None,
        fastest_step_s=min(times, default=None),
        slowest_step_s=max(times, default=None),
        step_parts=_parts(steps, sum(times)),
        bottleneck=str(properties.get("input_conclusion") or ""),
        operations=_operations(documents),
        peak_memory_bytes=_peak_memory(documents.get("memory_profile") or []),
    )


def _rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a DataTable by column."""
    names = [column.get("id") for column in table.get("cols") or []]
    for row in table.get("rows") or []:
        yield {name: (cell or {}).get("v") for name, cell in zip(names, row.get("c") or [], strict=False)}


def _parts(steps: Iterable[Mapping[str, Any]], total_s: float) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for row in steps:
        for column, part in _PARTS.items():
            sums[part] += _number(row.get(column)) / 1e3
    return {part: seconds / total_s for part, seconds in sums.items() if seconds > 0} if total_s > 0 else {}


def _operations(documents: Mapping[str, Any]) -> tuple[OperationTime, ...]:
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    occurrences: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in _rows(documents.get("hlo_stats") or {}):
        key = str(row.get("hlo_op_name") or ""), str(row.get("category") or "")
        seconds[key] += _number(row.get("total_self_time")) / 1e6
        occurrences[key] += round(_number(row.get("occurrences")))
    for name, microseconds in documents.get("operations") or []:
        key = str(name), ""
        seconds[key] += _number(microseconds) / 1e6
        occurrences[key] += 1
    total = sum(seconds.values())
    operations = [
        OperationTime(name, category, occurrences[name, category], spent, spent / total if total else 0.0)
        for (name, category), spent in seconds.items()
    ]
    return tuple(sorted(operations, key=lambda each: (-each.seconds, each.name, each.category)))


def _peak_memory(profiles: Iterable[Any]) -> int | None:
    peaks = []
    for profile in profiles:
        for allocator in ((profile or {}).get("memoryProfilePerAllocator") or {}).values():
            summary = (allocator or {}).get("profileSummary") or {}
            peak = (summary.get("peakStats") or {}).get("peakBytesInUse", summary.get("peakBytesUsageLifetime"))
            if peak is not None:
                peaks.append(int(_number(peak)))
    return max(peaks, default=None)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
