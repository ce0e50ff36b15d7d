"""The most memory that a program has used."""

from __future__ import annotations

from pathlib import Path


def peak_bytes(pid: int | str = "self") -> int:
    """Return the peak of a running process; `getrusage` counts that of the process which started it, too."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
