"""Convert any value to readable JSON of bounded size, without errors and secrets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from typing import Any, TypeAlias

from mldiagnostics.text.redaction import SECRET, is_secret, redact
from mldiagnostics.text.strict_json import spelled

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH = 28
"""Less than a record may have, whose payload holds it."""
MAX_VALUES = 20_000
MAX_TEXT = 4096
_MAX_NAME = 1024
_MAX_REPR = 256
_MAX_ELEMENTS = 64
_EXACT_INTEGER = 2**53

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def jsonable(value: object) -> Json:
    """Return `value` as JSON types; other values become strings, secrets `<secret>`.

    A secret is recognised by its key or its form (see `redaction`). NaN and infinities become strings. Arrays of more
    than 64 elements become their type and shape. At most 20 000 values and 28 levels are converted; an ellipsis stands
    for the rest, and for the end of a name of more than 1024 characters.
    """
    return _Reading().of(value, ())


class _Reading:
    """One pass over a value, with a limit on the number of values."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def of(self, value: Any, inside: tuple[int, ...]) -> Json:
        self._left -= 1
        if self._left < 0 or len(inside) > MAX_DEPTH:
            return "…"
        if id(value) in inside:
            return "<contains itself>"
        try:
            return self._plain(value) if _is_plain(value) else self._nested(value, (*inside, id(value)))
        except Exception:  # noqa: BLE001 - it runs code of the value's class
            return f"<{type(value).__name__} that cannot be shown>"

    def _plain(self, value: Any) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _shortened(redact(str(value)[: 2 * MAX_TEXT]), MAX_TEXT)
        if isinstance(value, int):
            return int(value) if abs(value) < _EXACT_INTEGER else str(int(value))
        return float(value) if math.isfinite(value) else spelled(value)

    def _nested(self, value: Any, inside: tuple[int, ...]) -> Json:
        if isinstance(value, Enum):
            return self.of(value.value, inside)
        if isinstance(value, Mapping):
            return self._mapping(value, inside)
        if (text := _text(value)) is not None:
            return text
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self._array(value, inside)
        if (parts := _parts(value)) is not None:
            return self._mapping(parts, inside)
        if isinstance(value, set | frozenset):
            return [self.of(item, inside) for item in sorted(value, key=str)]
        if isinstance(value, list | tuple | range):
            return self._sequence(value[: self._left + 1], inside)
        return _readable(value)

    def _mapping(self, value: Mapping[Any, Any], inside: tuple[int, ...]) -> Json:
        converted: dict[str, Json] = {}
        for key, item in list(value.items()):
            if self._left < 0:
                converted["…"] = "…"
                break
            name = _shortened(str(key.value if isinstance(key, Enum) else key), _MAX_NAME)
            converted[name] = SECRET if is_secret(name, item) else self.of(item, inside)
        named = value.get("name")
        if isinstance(named, str) and is_secret(named, value.get("value")):  # an environment variable of a pod
            converted["value"] = SECRET
        return converted

    def _sequence(self, value: Sequence[Any], inside: tuple[int, ...]) -> Json:
        """Convert a sequence; values after options such as `--token` are secrets."""
        converted = [self.of(item, inside) for item in value]
        for index, option in enumerate(value[:-1]):
            if isinstance(option, str) and option.startswith("-") and is_secret(option, value[index + 1]):
                converted[index + 1] = SECRET
        return converted

    def _array(self, value: Any, inside: tuple[int, ...]) -> Json:
        """Convert a small numpy array; describe others, which may be on a device."""
        if type(value).__module__.partition(".")[0] == "numpy" and value.size <= _MAX_ELEMENTS:
            return self.of(value.tolist(), inside)
        return f"{value.dtype}{list(value.shape)}"


def _is_plain(value: object) -> bool:
    return value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum))


def _text(value: Any) -> str | None:
    """Return the string for a class, function, time, bytes or path, else None."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return str(value.__fspath__()) if hasattr(value, "__fspath__") else None


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a dataclass, named tuple, configuration or namespace."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return _mapping_of(value._asdict())
    for name in ("to_dict", "model_dump"):
        if callable(method := getattr(value, name, None)):
            return _mapping_of(method())
    if type(value).__name__ in {"Namespace", "SimpleNamespace"}:
        return dict(vars(value))
    return None


def _mapping_of(value: object) -> Mapping[Any, Any] | None:
    return value if isinstance(value, Mapping) else None


def _readable(value: object) -> str:
    return _shortened(redact(_ADDRESS.sub("", repr(value))[: 2 * _MAX_REPR]), _MAX_REPR)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
