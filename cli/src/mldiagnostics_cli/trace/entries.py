"""Entries of logs. Pure.

They come from Cloud Logging, the SDK's records, and structured logs.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics_cli.trace import SEVERITIES
from mldiagnostics_cli.trace.moments import microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping


_RANKS = {name: rank for rank, name in enumerate(SEVERITIES)}
_RANKS |= {"TRACE": 0, "DEFAULT": 1, "NOTICE": 1, "WARN": 2, "ERR": 3, "FATAL": 4, "ALERT": 4, "EMERGENCY": 4}

_GLOG = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_SOURCE = re.compile(r"([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ ([^:\]\s]+:\d+)\] ", re.ASCII)
_TIMES = ("timestamp", "time", "ts", "t", "asctime", "@timestamp", "receiveTimestamp")
_MESSAGES = ("message", "msg", "event", "text")
_PODS = ("pod_name", "instance_name", "instance_id", "node_name", "worker_id")
_NO_FIELDS: Mapping[str, Any] = {}
_SILENT = frozenset({"config", "heartbeat"})
"""Kinds of records that say nothing about a moment."""


class LogEntry(NamedTuple):
    """One entry of a log; `t` is in microseconds, texts are empty where unknown."""

    t: int
    message: str
    process: str = ""
    """The pod or host: a group of tracks."""
    thread: str = ""
    """The container."""
    severity: str = ""
    source: str = ""
    """`<file>:<line>` of the program; its entries have a track for each file."""


class MetricSample(NamedTuple):
    """One value of a metric: a point of a counter track."""

    t: int
    name: str
    value: float
    process: str


class CorruptPart(NamedTuple):
    """A part of a log that is skipped."""

    place: str
    """Such as `line 17`."""
    reason: str


def of_document(document: Any) -> LogEntry | MetricSample | None:
    """Return the entry of a JSON object; None for a record that has nothing to show.

    Raises:
        ValueError: The object is not an entry of a log.
    """
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - a corrupt entry, as any other
    if "v" in document and "kind" in document:
        return _of_record(document)
    t = next((t for key in _TIMES if (t := microseconds(document.get(key))) is not None), None)
    if t is None:
        raise ValueError("has no time")
    payload = document.get("jsonPayload", document.get("protoPayload"))
    labels = _mapping(_mapping(document.get("resource")).get("labels")) or _mapping(document.get("labels"))
    location = _mapping(document.get("sourceLocation"))
    entry = LogEntry(
        t,
        _message(document, payload),
        process=_first(labels, _PODS) or _first(document, ("pod", "host", "hostname")),
        thread=_text(labels.get("container_name")) or _text(document.get("container")),
        severity=_first(document, ("severity", "level", "levelname")).upper(),
        source=f"{location['file']}:{location.get('line', 0)}" if location.get("file") else "",
    )
    return entry if entry.source else with_source(entry)


def reason_of(error: ValueError | RecursionError) -> str:
    """Return why a part of a log is skipped."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return "is not JSON" if isinstance(error, json.JSONDecodeError) else str(error)


def with_source(entry: LogEntry) -> LogEntry:
    """Return the entry with severity and source of a message of glog or absl."""
    message = entry.message
    if message[:1] not in _GLOG or (match := _SOURCE.match(message)) is None:
        return entry
    severity = entry.severity if _RANKS.get(entry.severity, 1) > 1 else _GLOG[match[1]]
    return entry._replace(message=message[match.end() :], severity=severity, source=match[2])


def is_at_least(severity: str, least: str) -> bool:
    """Return whether a severity reaches `least`; an unknown one counts as INFO."""
    return _RANKS.get(severity, 1) >= _RANKS[least]


def _of_record(record: Mapping[str, Any]) -> LogEntry | MetricSample | None:
    kind, t = record["kind"], microseconds(record.get("t"))
    if not isinstance(kind, str):
        raise ValueError("has a kind that is not a string")  # noqa: TRY004 - a corrupt entry, as any other
    if t is None:
        raise ValueError("has no time")
    process, name = f"rank {record.get('rank', 0)}", _text(record.get("name"))
    if kind == "metric":
        value = record.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            return None
        return MetricSample(t, name, value, process)
    if kind in _SILENT or (kind == "event" and name in {"goodput", "segment"}):
        return None
    payload = record.get("payload")
    details = f" {json.dumps(payload)}" if payload else ""
    return LogEntry(t, f"{name}{details}", process=process, thread=kind)


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError as error:
        raise ValueError("has a value that is too large") from error


def _message(document: Mapping[str, Any], payload: Any) -> str:
    if "textPayload" in document and (document["textPayload"] or payload is None):
        return _text(document["textPayload"])
    fields = _mapping(payload) or (document if payload is None else {})
    message = _first(fields, _MESSAGES)
    return message or json.dumps(payload if payload is not None else document, default=str)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NO_FIELDS


def _first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in fields and (text := _text(fields[key])):
            return text
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
