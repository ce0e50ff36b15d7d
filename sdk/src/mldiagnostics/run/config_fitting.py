"""Fit configurations into the limit of a record; pure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.values import keep

if TYPE_CHECKING:
    from collections.abc import Mapping


REST = "…"
"""Name that stands for the values at the end."""


def fitting_configs(configs: Mapping[str, Any], *, max_bytes: int) -> tuple[Mapping[str, Any], list[str]]:
    """Return the configurations within `max_bytes`, and the names of values left out.

    The largest values of the section `user` are replaced by a note of their size. If there are too many small ones,
    the last of them are left out.

    Args:
        configs: Sections of JSON types.
        max_bytes: Limit by the measure of `pipeline.values.keep`.
    """
    user = dict(configs.get("user") or {})
    sizes = {name: _size(name, value) for name, value in user.items()}
    left_out: list[str] = []
    excess = keep(configs, max_bytes=sys.maxsize)[1] - max_bytes
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        note = f"<left out: {sizes[name]} bytes>"
        saved = sizes[name] - _size(name, note)
        if excess <= 0 or saved <= 0:
            break
        user[name], sizes[name] = note, sizes[name] - saved
        left_out.append(name)
        excess -= saved
    if excess > 0:
        left_out += _without_last(user, sizes, excess)
    return (configs if not left_out else {**configs, "user": user}), left_out


def _without_last(user: dict[str, Any], sizes: Mapping[str, int], excess: int) -> list[str]:
    """Remove the last values; return their names."""
    removed: list[str] = []
    excess += _size(REST, f"<{len(user)} values left out>")
    while user and excess > 0:
        name, _ = user.popitem()
        removed.append(name)
        excess -= sizes[name]
    user[REST] = f"<{len(removed)} values left out>"
    return removed


def _size(name: str, value: object) -> int:
    return keep({name: value}, max_bytes=sys.maxsize)[1]
