"""The line that announces a run when it starts; pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin


def announcement(origin: Origin, *, source: str, view_url: str) -> str:
    """Return the line with the run's name, id, source of the id, directory and view."""
    processes = f", {origin.world_size} processes" if origin.world_size > 1 else ""
    look = f"{view_url}/{origin.run_id}" if view_url else f"python -m mldiagnostics.runs {shlex.quote(origin.storage)}"
    return (
        f"run {origin.name!r} began: id {origin.run_id} (from: {source}{processes}), files in {origin.directory}, "
        f"look at it with {look}"
    )
