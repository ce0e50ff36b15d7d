"""Strict parsing of `diagnosis.json`; pure.

The traces that a diagnosis is made of come from tenants, and so does its result: only output of
`Diagnosis.to_json` is accepted, within its bounds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.findings.model import (
    MAX_EVIDENCE,
    MAX_FINDINGS,
    MAX_HOSTS,
    SEVERITIES,
    VERSION,
    Diagnosis,
    Figure,
    Finding,
    FindingHost,
    Severity,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DIAGNOSIS_BYTES = 64 * 1024
MAX_TEXT = 1000
MAX_NUMBER = 1e15

T = TypeVar("T")


def parse_diagnosis(content: bytes, *, source: str) -> Diagnosis:
    """Return the diagnosis in the content of a file or the output of a job.

    Args:
        content: JSON of at most 64 KiB.
        source: Path or URL of the content, for messages.

    Raises:
        ConfigurationError: It is not a diagnosis of this version.
    """
    try:
        return _diagnosis(_Fields(json.loads(_bounded(content))))
    except (ValueError, RecursionError) as error:
        problem = "is not JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
        raise ConfigurationError(f"{source}: not a diagnosis of version {VERSION}: {problem}; diagnose again") from None


def _bounded(content: bytes) -> bytes:
    if len(content) > MAX_DIAGNOSIS_BYTES:
        raise ValueError(f"has {len(content)} bytes, more than {MAX_DIAGNOSIS_BYTES}")
    return content


class _Fields:
    """Values of one JSON object, each read once by its type; other keys are errors."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError("an object is expected")  # noqa: TRY004 - one kind of error for all content
        self._left: dict[str, Any] = dict(value)

    def read(self, key: str, accept: Callable[[Any], T]) -> T:
        if key not in self._left:
            raise ValueError(f"has no {key!r}")
        try:
            return accept(self._left.pop(key))
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None

    def end(self) -> None:
        if self._left:
            raise ValueError(f"has the unknown field {next(iter(self._left))[:40]!r}")


def _diagnosis(fields: _Fields) -> Diagnosis:
    if (version := fields.read("v", _count)) != VERSION:
        raise ValueError(f"has version {version}")
    diagnosis = Diagnosis(
        session=fields.read("session", _text),
        hosts=fields.read("hosts", _count),
        steps=fields.read("steps", _count),
        step_s=fields.read("stepSeconds", _optional(_amount)),
        findings=fields.read("findings", _many(_finding, most=MAX_FINDINGS)),
    )
    fields.end()
    if not diagnosis.findings:
        raise ValueError("findings: is empty")
    return diagnosis


def _finding(value: object) -> Finding:
    fields = _Fields(value)
    finding = Finding(
        code=fields.read("code", _text),
        severity=fields.read("severity", _severity),
        message=fields.read("message", _text),
        next_step=fields.read("nextStep", _text),
        hosts=fields.read("hosts", _many(_host, most=MAX_HOSTS)),
        host_count=fields.read("hostCount", _count),
        phase=fields.read("phase", _optional(_text)),
        operation=fields.read("operation", _optional(_text)),
        cost_s=fields.read("costSeconds", _amount),
        cost_share=fields.read("costShare", _amount),
        evidence=fields.read("evidence", _many(_evidence, most=MAX_EVIDENCE)),
    )
    fields.end()
    return finding


def _host(value: object) -> FindingHost:
    fields = _Fields(value)
    host = FindingHost(
        fields.read("name", _text),
        fields.read("rank", _optional(_count)),
        fields.read("pod", _optional(_text)),
        fields.read("node", _optional(_text)),
    )
    fields.end()
    return host


def _evidence(value: object) -> Figure:
    fields = _Fields(value)
    evidence = Figure(fields.read("name", _text), fields.read("value", _number), fields.read("unit", _text))
    fields.end()
    return evidence


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
        raise ValueError(f"is not a text of at most {MAX_TEXT} printable characters")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("is not a number")  # noqa: TRY004 - one kind of error for all content
    if not -MAX_NUMBER <= value <= MAX_NUMBER:  # also rejects NaN
        raise ValueError(f"is not between -{MAX_NUMBER:g} and {MAX_NUMBER:g}")
    return value


def _amount(value: object) -> float:
    if (number := _number(value)) < 0:
        raise ValueError("is negative")
    return number


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_NUMBER:
        raise ValueError("is not a count")
    return value


def _severity(value: object) -> Severity:
    for severity in SEVERITIES:
        if value == severity:
            return severity
    raise ValueError(f"is not one of {', '.join(SEVERITIES)}")


def _optional(accept: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else accept(value)


def _many(accept: Callable[[Any], T], *, most: int) -> Callable[[Any], tuple[T, ...]]:
    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise ValueError(f"is not a list of at most {most}")
        return tuple(accept(each) for each in value)

    return read
