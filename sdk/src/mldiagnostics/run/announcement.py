"""The line that announces a run when it starts; pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin


def announcement(origin: Origin, *, source: str, view_url: str, has_view: bool) -> str:
    """Return the line with the run's name, id, source of the id, directory and view.

    Args:
        origin: Identity of the process that leads the run.
        source: Origin of the id, as one word.
        view_url: URL of the deployed view; empty without one.
        has_view: Whether `mldiag view` is installed beside the SDK.
    """
    processes = f", {origin.world_size} processes" if origin.world_size > 1 else ""
    command = "mldiag view" if has_view else "python -m mldiagnostics.runs"
    look = f"{view_url}/{origin.run_id}" if view_url else f"{command} {shlex.quote(origin.storage)}"
    return (
        f"run {origin.name!r} began: id {origin.run_id} (from: {source}{processes}), files in {origin.directory}, "
        f"look at it with {look}"
    )
