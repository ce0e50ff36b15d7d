"""Configurations of two runs whose sessions are compared. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.flat_configs import flattened

if TYPE_CHECKING:
    from collections.abc import Mapping


SECTIONS = ("user", "hardware")
"""Another version of software is a reason to compare two runs."""
_LONGEST = 60
"""Characters of a value in a message."""


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return the first difference of two configurations as a phrase, or None.

    Sessions without a run, and runs without configurations, are not compared.

    Args:
        before: Configurations of the earlier session's run by section.
        after: Those of the later one.

    >>> difference({"user": {"batch": 32, "lr": 0.1}}, {"user": {"batch": 64, "lr": 0.2}})
    'user.batch: 32 before, 64 after (1 more differs)'
    """
    sides = [flattened({name: side[name] for name in SECTIONS if side.get(name)}) for side in (before, after)]
    if not all(sides):
        return None
    keys = sorted(sides[0].keys() | sides[1].keys())
    differing = [key for key in keys if sides[0].get(key) != sides[1].get(key)]
    if not differing:
        return None
    values = [str(side.get(differing[0], "not set"))[:_LONGEST] for side in sides]
    more = len(differing) - 1
    rest = f" ({more} more {'differs' if more == 1 else 'differ'})" if more else ""
    return f"{differing[0]}: {values[0]} before, {values[1]} after{rest}"
