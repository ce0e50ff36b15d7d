"""Write JSON that every parser accepts; pure.

Python's encoder writes `NaN` and `Infinity` for numbers that JSON cannot say. Polars, jq and `JSON.parse` reject them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["dumps", "finite", "spelled"]

_compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def dumps(value: object, *, indent: int | None = None) -> str:
    """Return `value` as valid JSON, ASCII only; a number that is not finite becomes its name, such as `"NaN"`.

    Args:
        value: made of JSON's types.
        indent: spaces for each level; None writes everything on one line without blanks.
    """
    try:
        return _compact(value) if indent is None else json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:  # costs nothing where all numbers are finite
        return json.dumps(
            finite(value), indent=indent, allow_nan=False, separators=(",", ":") if indent is None else None
        )


def finite(value: Any) -> Any:
    """Return the value with names in place of the numbers that are not finite, also as keys and below."""
    if isinstance(value, float) and not math.isfinite(value):
        return spelled(value)
    if isinstance(value, Mapping):
        return {finite(key): finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def spelled(number: float) -> str:
    """Return the name of a number that is not finite: `NaN`, `Infinity` or `-Infinity`."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
