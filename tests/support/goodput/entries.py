"""Log entries of a small job, written by hand: moments are seconds after its begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

JOB = "case-job"
T0 = 1_735_689_600.0

Payload = dict[str, Any]


def at(key: str, t: float, **more: Any) -> Payload:
    """Return an entry with a moment."""
    return {"job_name": JOB, **more, key: T0 + t}


def step(index: int, t: float) -> Payload:
    """Return the start of a step."""
    return at("step_start_time", t, step_count=index)


def steps(first: int, begins: list[float]) -> list[Payload]:
    """Return the starts of steps that follow each other."""
    return [step(index, t) for index, t in enumerate(begins, first)]


def span(name: str, start: float, end: float, **more: Any) -> list[Payload]:
    """Return both ends of a phase: `tpu_init`, `data_loading`, …"""
    return [at(f"{name}_start_time", start, **more), at(f"{name}_end_time", end, **more)]


def slices(t: float, active: int, *, total: int = 4, available: int = 4) -> Payload:
    """Return how many slices there were."""
    counts = {"active_slices": active, "total_slices": total, "available_slices": available}
    return at("elastic_slice_counts_timestamp", t, **counts)


def utc(t: float) -> datetime:
    """Return a moment as people give it to queries."""
    return datetime.fromtimestamp(T0 + t, timezone.utc)


@dataclass
class Entries:
    """A user's `cloud_logger=` object, which returns all of its entries."""

    payloads: list[Payload] = field(default_factory=list)

    def write_cloud_logging_entry(self, entry: Payload) -> None:
        self.payloads.append(entry)

    def read_cloud_logging_entries(self, *_: object, **__: object) -> tuple[list[Payload], tuple[None, None]]:
        return list(self.payloads), (None, None)
