"""The report as JSON and back; pure.

Keys are in the style of runs and Kubernetes objects: `wasted_s` is `wastedSeconds`, and the time `lost` is `lostTime`,
as RFC 3339. Version 1 also has the keys of before, which are the names of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from mldiagnostics.goodput.report.model import GoodputReport
from mldiagnostics.text.timestamps import posix_seconds, timestamp

VERSION = 1

_TIMES = {
    "created": "creationTime",
    "end": "endTime",
    "ended": "completionTime",
    "lost": "lostTime",
    "now": "asOfTime",
    "restarted": "restartTime",
    "resumed": "resumeTime",
    "start": "startTime",
    "started": "startTime",
}
"""Keys of the fields with times."""


def key_of(name: str) -> str:
    """Return the key of a field.

    >>> key_of("wasted_s"), key_of("lost"), key_of("steps_lost")
    ('wastedSeconds', 'lostTime', 'stepsLost')
    """
    if name in _TIMES:
        return _TIMES[name]
    first, *others = (f"{name[:-2]}_seconds" if name.endswith("_s") else name).split("_")
    return first + "".join(part.capitalize() for part in others)


def as_json(report: GoodputReport, *, old_keys: bool = True) -> dict[str, Any]:
    """Return the report as JSON types.

    Unknown values are null; no number is NaN or infinite.

    Args:
        report: The report.
        old_keys: Whether the keys of before are added, as version 1 of the document has them.
    """
    document: dict[str, Any] = _plain(report, old_keys=old_keys)
    return {"v": VERSION, **document} if old_keys else document


def from_json(document: Mapping[str, Any]) -> GoodputReport:
    """Return the report from a document of `as_json`, also of an earlier release.

    Raises:
        ValueError: the document is not a report, or it has another version.
    """
    if document.get("v", VERSION) != VERSION:
        raise ValueError(f"not a goodput report of version {VERSION}: v is {document.get('v')!r}")
    try:
        report: GoodputReport = _typed(GoodputReport, document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a goodput report: {error!r}") from error
    return report


def _plain(value: Any, *, old_keys: bool) -> Any:
    if is_dataclass(value):
        return dict(_items(value, old_keys=old_keys))
    if isinstance(value, Mapping):
        return {key: _plain(item, old_keys=old_keys) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item, old_keys=old_keys) for item in value]
    return value


def _items(value: Any, *, old_keys: bool) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        plain = _plain(getattr(value, field.name), old_keys=old_keys)
        if old_keys:
            yield field.name, plain
        yield key_of(field.name), timestamp(plain) if field.name in _TIMES else plain


def _typed(kind: Any, value: Any) -> Any:
    """Return a value of the type `kind` from its JSON form."""
    if isinstance(kind, UnionType):
        (kind,) = (choice for choice in get_args(kind) if choice is not NoneType)
        return None if value is None else _typed(kind, value)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(
            **{field.name: _field(field, hints[field.name], value) for field in fields(kind) if _is_in(field, value)}
        )
    if get_origin(kind) is tuple:
        return tuple(_typed(get_args(kind)[0], item) for item in value)
    return dict(value) if get_origin(kind) is Mapping else value


def _is_in(field: Field[Any], document: Mapping[str, Any]) -> bool:
    """Return whether a document has a field, or must have it."""
    is_required = field.default is MISSING and field.default_factory is MISSING
    return is_required or field.name in document or key_of(field.name) in document


def _field(field: Field[Any], kind: Any, document: Mapping[str, Any]) -> Any:
    if field.name in document:
        return _typed(kind, document[field.name])
    value = document[key_of(field.name)]
    return posix_seconds(value) if field.name in _TIMES and value is not None else _typed(kind, value)
