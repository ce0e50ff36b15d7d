"""Fit configurations into the limit of a record; pure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.values import keep

if TYPE_CHECKING:
    from collections.abc import Mapping


def fitting_configs(configs: Mapping[str, Any], *, max_bytes: int) -> tuple[Mapping[str, Any], list[str]]:
    """Return the configurations within `max_bytes`, and the names of values left out.

    The largest values of the section `user` are replaced by a note of their size.

    Args:
        configs: Sections of JSON types.
        max_bytes: Limit by the measure of `pipeline.values.keep`.
    """
    user = dict(configs.get("user") or {})
    sizes = {name: keep({name: value}, max_bytes=sys.maxsize)[1] for name, value in user.items()}
    left_out: list[str] = []
    excess = keep(configs, max_bytes=sys.maxsize)[1] - max_bytes
    for name in sorted(sizes, key=lambda each: -sizes[each]):
        if excess <= 0:
            break
        user[name] = f"<left out: {sizes[name]} bytes>"
        left_out.append(name)
        excess += keep({name: user[name]})[1] - sizes[name]
    return (configs if not left_out else {**configs, "user": user}), left_out
