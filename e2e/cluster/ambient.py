"""The user's environment, for programs that fetch and build into caches: proxies, registries, Docker's context.

Tests run in an environment of their own, which keeps the user's variables under another name.
"""

import os
from collections.abc import Mapping
from pathlib import Path

PREFIX = "AMBIENT_"
REPLACED = ("HOME", "TMPDIR", "TZ", "LC_ALL")
"""Variables to which a test gives values of its own."""


def environment() -> dict[str, str]:
    """Return the variables of this process, with those of the user where tests have hidden them."""
    return restored(os.environ)


def home() -> Path:
    """Return the user's home."""
    return Path(environment().get("HOME") or Path.home())


def proxies() -> tuple[dict[str, str], str]:
    """Return the user's proxies by scheme, and the hosts that are reached without one."""
    named = {name.lower(): value for name, value in environment().items() if name.lower().endswith("_proxy") and value}
    without = named.pop("no_proxy", "")
    return {name.removesuffix("_proxy"): value for name, value in named.items()}, without


def hidden(variables: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the kept variables, and all others under their hidden names."""
    return {name if name in kept or name.startswith(PREFIX) else PREFIX + name: variables[name] for name in variables}


def restored(variables: Mapping[str, str]) -> dict[str, str]:
    """Undo `hidden`; variables that were set since then remain, except for those that tests replace."""
    names = [name for name in variables if name.startswith(PREFIX)]
    if not names:
        return dict(variables)
    own = {name: value for name, value in variables.items() if name not in (*names, *REPLACED)}
    return {name.removeprefix(PREFIX): variables[name] for name in names} | own
