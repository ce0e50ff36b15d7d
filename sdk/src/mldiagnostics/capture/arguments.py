"""Check the arguments of `capture` before anything is contacted; pure."""

import operator
import re
from collections.abc import Iterable
from typing import Any

from mldiagnostics.errors import ConfigurationError

_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_ADDRESSES = "give a list of addresses such as ['10.0.0.7:9999'], or one address as text"


def address_list(addresses: Any) -> list[str]:
    """Return the addresses as a list; a single text is one address. Raises `ConfigurationError`."""
    if isinstance(addresses, str):
        if "," in addresses:
            raise ConfigurationError(f"addresses={addresses!r}: this is one text with several addresses; {_ADDRESSES}")
        return [addresses]
    found = list(addresses) if isinstance(addresses, Iterable) and not isinstance(addresses, bytes) else None
    if found is None or not all(isinstance(address, str) for address in found):
        raise ConfigurationError(f"addresses={addresses!r}: not a list of texts; {_ADDRESSES}")
    return found


def stem_list(stems: Any, count: int) -> list[str]:
    """Return the names of the trace files, one for each of `count` addresses. Raises `ConfigurationError`."""
    found = list(stems) if isinstance(stems, list | tuple) else []
    given = f"stems={stems!r}"
    if not all(isinstance(stem, str) and _STEM.fullmatch(stem) for stem in found):
        raise ConfigurationError(f"{given}: a name may have letters, digits, '.', '_' and '-'; such as host-0")
    if len(found) != count or len(set(found)) != count:
        raise ConfigurationError(f"{given}: not {count} different names; give one for each address, in their order")
    return found


def whole(name: str, value: Any, unit: str) -> int:
    """Return a whole number, as which a float without fraction counts. Raises `ConfigurationError`."""
    try:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise ConfigurationError(f"{name}={value!r}: not a whole number of {unit}; {_example(name, value)}")


def seconds(name: str, value: Any) -> float:
    """Return a number of seconds above 0. Raises `ConfigurationError`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise ConfigurationError(f"{name}={value!r}: not a number of seconds above 0; {_example(name, value)}")


def place(name: str, value: Any) -> str:
    """Return a path or URL as text. Raises `ConfigurationError`."""
    text = value.__fspath__() if hasattr(value, "__fspath__") else value
    if isinstance(text, str) and text:
        return text
    raise ConfigurationError(f"{name}={value!r}: not a path or URL; give a directory or gs://bucket/prefix")


def _example(name: str, value: Any) -> str:
    if isinstance(value, str) and value.strip().isdigit():
        return f"write {name}={value.strip()} without quotes"
    return f"write, for example, {name}=2000" if name.endswith("_ms") else f"write, for example, {name}=60"
