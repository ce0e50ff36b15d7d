"""Configurations and last metrics of a run as cells of a table; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.flat_configs import flattened
from mldiagnostics.text.strict_json import finite

from mldiagnostics_view.documents import clipped
from mldiagnostics_view.limits import MAX_DEPTH, MAX_VALUE_CHARS, MAX_VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping


Cell = str | int | float | bool | None


def run_values(configs: Mapping[str, Any], metrics: Mapping[str, float]) -> dict[str, dict[str, Cell]]:
    """Return the cells of a run.

    Configurations have their paths as names, such as `user.rate`. Numbers that are not finite are texts, as in all
    documents. Of too many names, the first are returned.
    """
    sections = dict(sorted(configs.items(), key=lambda each: (each[0] != "user", each[0])))
    flat = flattened(sections, most_levels=MAX_DEPTH)
    return {
        "configs": _first({path: _cell(value) for path, value in flat.items()}),
        "metrics": _first(finite(dict(metrics))),
    }


def _first(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    fitting = [each for each in cells.items() if len(each[0]) <= MAX_VALUE_CHARS]
    return dict(fitting[:MAX_VALUES])


def _cell(value: Any) -> Cell:
    value = clipped(value)
    if isinstance(value, bool | float | None):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
