"""Configurations of a run under one name each; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flattened(section: Mapping[str, Any], prefix: str = "", *, most_levels: float = float("inf")) -> dict[str, Any]:
    """Return nested configurations under names with dots; deeper ones stay objects.

    >>> flattened({"user": {"lr": 0.1, "optimizer": {"name": "adam"}}})
    {'user.lr': 0.1, 'user.optimizer.name': 'adam'}
    """
    flat: dict[str, Any] = {}
    for name, value in section.items():
        if isinstance(value, Mapping) and value and most_levels > 1:
            flat |= flattened(value, f"{prefix}{name}.", most_levels=most_levels - 1)
        else:
            flat[f"{prefix}{name}"] = value
    return flat
