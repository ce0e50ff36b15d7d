"""Workloads, pods and events recorded from the real controllers by `e2e/record_runs.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

Object = dict[str, Any]

FOLDER: Final = Path(__file__).parents[2] / "api/lifecycle/recordings"


def recorded(title: str) -> list[Object]:
    """Return the states of a workload, or the pods or events of a recording."""
    return [json.loads(line) for line in (FOLDER / f"{title}.jsonl").read_text().splitlines()]
