"""Schedules as rows, and one with its captures and refusals."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.formats import optional_time

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import note, show, show_document, show_rows, terminal_width
from mldiagnostics_cli.table import TableColumn, table
from mldiagnostics_cli.values import DASH, age, moment, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Object = Mapping[str, Any]


def show_schedules(schedules: Sequence[Object], output: OutputFormat, *, place: str) -> None:
    """Print schedules, one a line."""
    if not schedules and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        note(f"No schedules in {place}.")
        return
    several = len({each["metadata"]["namespace"] for each in schedules}) > 1
    show_rows(
        schedules,
        _columns(time.time(), several),
        output,
        name=lambda each: str(each["metadata"]["name"]),
        document=dict,
    )


def show_schedule(schedule: Object, output: OutputFormat) -> None:
    """Print one schedule: state, next slot, newest captures, refusals by limit."""
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(dict(schedule), output)
        return
    if output is OutputFormat.NAME:
        show(str(schedule["metadata"]["name"]) + "\n")
        return
    status, now = schedule.get("status") or {}, time.time()
    lines = [f"{title + ':':<11}{text}" for title, text in _facts(schedule, status, now)]
    captures = list(reversed(status.get("captures") or ()))
    if captures:
        lines += ["", *table(captures, _captures(now), width=terminal_width())]
    refusals = status.get("refusals") or ()
    lines += [""] if refusals else []
    for each in refusals:
        lines.append(
            f"Refused {each['count']} by {each['reason']}, {_ago(each['lastTime'], now)} ago: {each['message']}"
        )
    show("\n".join(lines) + "\n")


def _facts(schedule: Object, status: Object, now: float) -> list[tuple[str, str]]:
    ready = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), None)
    budget = schedule["spec"].get("budget") or {}
    return [
        ("Schedule", f"{schedule['metadata']['name']} in namespace {schedule['metadata']['namespace']}"),
        ("Times", status.get("schedule") or DASH),
        ("State", f"{ready['reason']}: {ready['message']}" if ready else "not seen by an operator yet"),
        ("Runs", str(status.get("runs", DASH))),
        ("Last", _ago(status.get("lastCaptureTime"), now)),
        ("Next", _at(status.get("nextCaptureTime"))),
        ("Last day", f"captures: {status.get('capturesLastDay', 0)}, {size(status.get('bytesLastDay') or 0)}"),
        ("Budget", ", ".join(f"{key} {value}" for key, value in budget.items()) or "default"),
    ]


def _columns(now: float, with_namespace: bool) -> list[TableColumn[Object]]:
    return [
        TableColumn("NAME", lambda each: str(each["metadata"]["name"])),
        TableColumn("NAMESPACE", lambda each: str(each["metadata"]["namespace"]), is_wide=not with_namespace),
        TableColumn("SCHEDULE", lambda each: _of(each, "schedule")),
        TableColumn("STATE", _reason),
        TableColumn("RUNS", lambda each: _of(each, "runs"), is_number=True),
        TableColumn("TODAY", lambda each: _of(each, "capturesLastDay"), is_number=True),
        TableColumn("REFUSED", lambda each: _of(each, "refused"), is_number=True),
        TableColumn("LAST", lambda each: _ago(_of(each, "lastCaptureTime"), now), is_number=True),
        TableColumn("NEXT", lambda each: _at(_of(each, "nextCaptureTime"))),
    ]


def _captures(now: float) -> list[TableColumn[Object]]:
    return [
        TableColumn("CAPTURE", lambda each: str(each["name"])),
        TableColumn("RUN", lambda each: str(each["run"])),
        TableColumn("AGE", lambda each: _ago(each["time"], now), is_number=True),
        TableColumn("STATE", lambda each: str(each["state"])),
        TableColumn("SIZE", lambda each: size(each.get("bytes")), is_number=True),
        TableColumn("REASON", lambda each: each.get("message") or DASH),
    ]


def _of(schedule: Object, field: str) -> str:
    value = (schedule.get("status") or {}).get(field)
    return DASH if value is None else str(value)


def _reason(schedule: Object) -> str:
    conditions = (schedule.get("status") or {}).get("conditions") or ()
    return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), DASH)


def _ago(text: object, now: float) -> str:
    time = optional_time(text)
    return DASH if time is None else age(now - time.timestamp())


def _at(text: object) -> str:
    time = optional_time(text)
    return DASH if time is None else moment(time.timestamp())
