"""Write JSON that every parser accepts; pure.

Python's encoder writes `NaN` and `Infinity`, which are not JSON: Polars, jq and `JSON.parse` reject them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def dumps(value: object, *, indent: int | None = None) -> str:
    """Return `value` as valid JSON, ASCII only.

    A number that is not finite becomes its name, such as `"NaN"`.

    Args:
        value: made of JSON's types.
        indent: spaces for each level; None writes everything on one line without blanks.
    """
    try:
        return _compact(value) if indent is None else json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:  # only if a number is not finite
        return json.dumps(
            finite(value), indent=indent, allow_nan=False, separators=(",", ":") if indent is None else None
        )


def finite(value: Any) -> Any:
    """Return the value with names for all numbers that are not finite, at any depth."""
    if isinstance(value, float) and not math.isfinite(value):
        return spelled(value)
    if isinstance(value, Mapping):
        return {finite(key): finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def spelled(number: float) -> str:
    """Return `NaN`, `Infinity` or `-Infinity` for a number that is not finite."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
