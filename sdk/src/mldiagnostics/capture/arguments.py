"""Checks of the arguments of `capture`; pure. Each raises `ConfigurationError`."""

import operator
import re
from collections.abc import Iterable
from typing import Any

from mldiagnostics.errors import ConfigurationError

_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_ADDRESSES = "pass a list of addresses such as ['10.0.0.7:9999'], or one address as a string"


def address_list(addresses: Any) -> list[str]:
    """Return the addresses as a list; a single string is one address."""
    if isinstance(addresses, str):
        if "," in addresses:
            raise ConfigurationError(f"addresses={addresses!r}: one string with several addresses; {_ADDRESSES}")
        return [addresses]
    listed = list(addresses) if isinstance(addresses, Iterable) and not isinstance(addresses, bytes) else None
    if listed is None or not all(isinstance(address, str) for address in listed):
        raise ConfigurationError(f"addresses={addresses!r}: not a list of strings; {_ADDRESSES}")
    return listed


def stem_list(stems: Any, count: int) -> list[str]:
    """Return the names of the trace files, one for each of `count` addresses."""
    listed = list(stems) if isinstance(stems, list | tuple) else []
    if not all(isinstance(stem, str) and _STEM.fullmatch(stem) for stem in listed):
        raise ConfigurationError(
            f"stems={stems!r}: a name has other characters than letters, digits, '.', '_' and '-'; write, for "
            "example, host-0"
        )
    if len(listed) != count or len(set(listed)) != count:
        raise ConfigurationError(
            f"stems={stems!r}: not {count} different names; pass one for each address, in the same order"
        )
    return listed


def whole_number(name: str, value: Any, unit: str) -> int:
    """Return a whole number; a float without a fraction is one too."""
    try:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise ConfigurationError(f"{name}={value!r}: not a whole number of {unit}; {_example(name, value)}")


def seconds(name: str, value: Any) -> float:
    """Return a number of seconds above 0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise ConfigurationError(f"{name}={value!r}: not a number of seconds above 0; {_example(name, value)}")


def storage_path(name: str, value: Any) -> str:
    """Return a path or URL as a string."""
    text = value.__fspath__() if hasattr(value, "__fspath__") else value
    if isinstance(text, str) and text:
        return text
    raise ConfigurationError(
        f"{name}={value!r}: not a path or URL; pass a directory, gs://bucket/prefix, s3://… or az://…"
    )


def _example(name: str, value: Any) -> str:
    if isinstance(value, str) and value.strip().isdigit():
        return f"write {name}={value.strip()} without quotes"
    return f"write, for example, {name}=2000" if name.endswith("_ms") else f"write, for example, {name}=60"
