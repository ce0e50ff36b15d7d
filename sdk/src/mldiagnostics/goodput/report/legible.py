"""Escaping of a report for terminals: its names come from untrusted logs; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from mldiagnostics.goodput.report.model import GoodputReport


def printable_report(report: GoodputReport) -> GoodputReport:
    """Return the report with `printable` applied to every string."""
    shown: GoodputReport = _printable(report)
    return shown


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _printable(getattr(value, field.name)) for field in fields(value)})
    if isinstance(value, Mapping):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return tuple(map(_printable, value)) if isinstance(value, tuple) else value
