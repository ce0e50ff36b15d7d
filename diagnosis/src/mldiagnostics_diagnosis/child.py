"""Summaries of traces, each made in a process of its own.

Tenants write the traces, and a trace may be a gigabyte: the process that reads one has limits of memory and time,
writes one document of at most 16 KiB, and may be killed. Its output is parsed as strictly as any other file.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import TRACE_SUFFIX
from mldiagnostics.text.file_errors import file_problem

from mldiagnostics_diagnosis.limits import CORRUPT, TOO_LARGE, Limits
from mldiagnostics_diagnosis.summary import MAX_SUMMARY_BYTES, HostSummary, parse_summary

if TYPE_CHECKING:
    from pathlib import Path


class TraceUnreadable(ConfigurationError):
    """A trace has no summary: it is corrupt, or too large for the limits."""


def summarize(path: Path, *, limits: Limits | None = None, host: str | None = None) -> HostSummary:
    """Return the summary of a trace, read in a child process.

    Args:
        path: The trace, an XSpace file.
        limits: Limits of the process.
        host: Name of the host; by default, the stem of the file.

    Raises:
        TraceUnreadable: The file is missing, empty or corrupt, or reading it exceeds the limits.
    """
    limits = limits or Limits()
    try:
        trace_bytes = path.stat().st_size
    except OSError as error:
        raise TraceUnreadable(f"{path}: cannot be read: {file_problem(error, 'pass another file')}") from None
    if not trace_bytes:
        raise TraceUnreadable(f"{path}: is empty; capture the host again")
    name = host or path.name.removesuffix(TRACE_SUFFIX)
    arguments = [str(path), name, str(limits.memory_for(trace_bytes)), str(limits.cpu_s), str(MAX_SUMMARY_BYTES)]
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "mldiagnostics_diagnosis", "summarize", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=limits.deadline_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TraceUnreadable(
                f"{path}: reading it took over {limits.deadline_s:g} s; capture for a shorter time"
            ) from None
        if done.returncode:
            raise TraceUnreadable(f"{path}: {_problem(done.returncode, limits)}")
        output.seek(0)
        return parse_summary(output.read(MAX_SUMMARY_BYTES + 1), source=str(path))


def _problem(code: int, limits: Limits) -> str:
    if code == CORRUPT:
        return "is not a trace, or is cut; capture the host again"
    if code == TOO_LARGE:
        return "needs more memory than the limit allows; capture for a shorter time"
    if code == -signal.SIGKILL:  # also by the kernel, if a container has no memory left
        return "the reader was killed, which takes too much memory or time; capture for a shorter time"
    if code == -signal.SIGXCPU:
        return f"reading it took over {limits.cpu_s} s of processor time; capture for a shorter time"
    return f"the reader ended with code {code}; open it in XProf, and report it with the trace"
