"""The report as JSON and back; keys are the names of the fields; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from mldiagnostics.goodput.report.model import GoodputReport

__all__ = ["VERSION", "as_json", "from_json"]

VERSION = 1


def as_json(report: GoodputReport) -> dict[str, Any]:
    """Return the report as JSON types.

    Unknown values are null; no number is NaN or infinite.
    """
    return {"v": VERSION, **_plain(report)}


def from_json(document: Mapping[str, Any]) -> GoodputReport:
    """Return the report from the document of `as_json`.

    Raises:
        ValueError: the document is not a report, or it has another version.
    """
    if document.get("v") != VERSION:
        raise ValueError(f"not a goodput report of version {VERSION}: v is {document.get('v')!r}")
    try:
        report: GoodputReport = _typed(GoodputReport, document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a goodput report: {error!r}") from error
    return report


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _typed(kind: Any, value: Any) -> Any:
    """Return a value of the type `kind` from its JSON form."""
    if isinstance(kind, UnionType):
        (kind,) = (choice for choice in get_args(kind) if choice is not NoneType)
        return None if value is None else _typed(kind, value)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        present = (
            field
            for field in fields(kind)
            if field.name in value or (field.default is MISSING and field.default_factory is MISSING)
        )
        return kind(**{field.name: _typed(hints[field.name], value[field.name]) for field in present})
    if get_origin(kind) is tuple:
        return tuple(_typed(get_args(kind)[0], item) for item in value)
    return dict(value) if get_origin(kind) is Mapping else value
