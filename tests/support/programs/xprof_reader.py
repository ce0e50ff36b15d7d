"""Readers of stored traces with XProf, the viewer of users."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def xprof(tool: str, files: Sequence[str], **parameters: object) -> Any:
    """Return the output of a tool of XProf for the files."""
    from xprof.convert import raw_to_tool_data

    data, _ = raw_to_tool_data.xspace_to_tool_data(list(files), tool, {"use_saved_result": False, **parameters})
    return json.loads(data)


def names_in(file: str) -> set[str]:
    """Return the names of processes, threads and events that the trace viewer shows."""
    events = xprof("trace_viewer", [file])["traceEvents"]
    return {name for event in events for name in (event.get("name"), event.get("args", {}).get("name")) if name}
