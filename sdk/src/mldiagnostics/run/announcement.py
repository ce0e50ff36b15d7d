"""The one line that people look for when a run begins; pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin


def announcement(origin: Origin, *, source: str, view_url: str) -> str:
    """Return the line: which run, its id and what that comes from, where its files are, how to look at them."""
    processes = f", {origin.world_size} processes" if origin.world_size > 1 else ""
    look = f"{view_url}/{origin.run_id}" if view_url else f"python -m mldiagnostics.runs {shlex.quote(origin.storage)}"
    return (
        f"run {origin.name!r} began: id {origin.run_id} (from: {source}{processes}), files in {origin.directory}, "
        f"look at it with {look}"
    )
