"""The process that converts traces with XProf: `python -m … FILE…` prints the documents of its tools as JSON.

XProf writes logs to standard error and may abort on a corrupt trace, so it has a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["TOOLS"]

TOOLS = ("overview_page", "hlo_stats")
MEMORY_TOOL = "memory_profile"
TRACE_TOOL = "trace_viewer"


def _convert(files: list[str]) -> dict[str, Any]:
    from xprof.convert import raw_to_tool_data  # noqa: PLC0415 - only in this process; over a second

    def document(tool: str, paths: list[str]) -> Any:
        content, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {"use_saved_result": False})
        return json.loads(content) if content else None

    documents = {tool: document(tool, files) for tool in TOOLS}
    documents[MEMORY_TOOL] = [document(MEMORY_TOOL, [file]) for file in files]
    if not (documents["hlo_stats"] or {}).get("rows"):  # a CPU has no device: its operations are in the trace alone
        trace = document(TRACE_TOOL, files) or {}
        documents["operations"] = [
            (event["args"]["hlo_op"], event["dur"])
            for event in trace.get("traceEvents", [])
            if isinstance(event.get("args"), dict) and "hlo_op" in event["args"] and "dur" in event
        ]
    return documents


if __name__ == "__main__":
    output = os.dup(1)
    os.dup2(2, 1)  # XProf's own lines are not part of the result
    with os.fdopen(output, "w", encoding="utf-8") as result:
        json.dump(_convert(sys.argv[1:]), result)
