"""Worked traces of jobs: log entries, queries, the results of ml-goodput-measurement and the correct results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

JOB = "case-job"
_FILE = Path(__file__).parents[2] / "sdk/goodput/data/cases.json"


@dataclass(frozen=True)
class Question:
    """One query; times are POSIX seconds. `peer` and `right` have the answers, where there are any."""

    op: str
    now: float
    window: tuple[float, float] | None
    exclusions: tuple[tuple[float, float], ...]
    peer: dict[str, Any]
    right: dict[str, Any] | None


@dataclass(frozen=True)
class Case:
    """One log, each payload with the time at which it was logged."""

    name: str
    elastic: bool
    verdict: str
    entries: tuple[tuple[float, dict[str, Any]], ...]
    questions: tuple[Question, ...]

    def reader(self, now: float) -> CaseReader:
        """Return the log as a user's `cloud_logger=` object returns it at a given time."""
        return CaseReader(self.entries, now)


class CaseReader:
    """Entries as a Cloud Logging reader gives them: by the time at which they were logged."""

    def __init__(self, entries: tuple[tuple[float, dict[str, Any]], ...], now: float) -> None:
        self._entries = entries
        self.now = now

    def write_cloud_logging_entry(self, entry: dict[str, Any]) -> None:
        self._entries = (*self._entries, (self.now, entry))

    def read_cloud_logging_entries(
        self,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        last_entry_info: tuple[datetime, str] | None = None,
    ) -> tuple[list[dict[str, Any]], tuple[datetime | None, str | None]]:
        end = end_time or datetime.fromtimestamp(self.now, timezone.utc)
        start = start_time or end - timedelta(days=7)
        cursor = (last_entry_info[0], int(last_entry_info[1])) if last_entry_info else (start, len(self._entries))
        listed = [
            ((datetime.fromtimestamp(t, timezone.utc), n), payload) for n, (t, payload) in enumerate(self._entries)
        ]
        read = [(at, payload) for at, payload in sorted(listed, key=lambda row: row[0]) if cursor < at and at[0] <= end]
        last = (read[-1][0][0], str(read[-1][0][1])) if read else (None, None)
        return [dict(payload) for _, payload in read], last


def cases() -> list[Case]:
    """Return all of them."""
    data = json.loads(_FILE.read_text())
    return [_case(name, case, data["t0"]) for name, case in data["cases"].items()]


def _case(name: str, case: dict[str, Any], t0: float) -> Case:
    entries = tuple((t0 + logged, _payload(payload, t0)) for logged, payload in case["entries"])
    questions = tuple(_question(op, t0) for op in case["ops"])
    return Case(name, case["calculator"] == "elastic", case["verdict"], entries, questions)


def _payload(payload: dict[str, Any], t0: float) -> dict[str, Any]:
    times = {key for key in payload if key.endswith(("_time", "_timestamp", "_at"))}
    return {"job_name": JOB} | {
        key: t0 + value if key in times and value is not None else value for key, value in payload.items()
    }


def _question(op: dict[str, Any], t0: float) -> Question:
    window = op.get("window")
    return Question(
        op=op["op"],
        now=t0 + op["now"],
        window=(t0 + window[0], t0 + window[1]) if window else None,
        exclusions=tuple((t0 + start, t0 + end) for start, end in op.get("exclusions", ())),
        peer=op["peer"],
        right=op.get("right"),
    )
