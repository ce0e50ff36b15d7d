"""Limits of the process that reads a trace, and the exit codes that name its problem."""

from __future__ import annotations

import resource
from dataclasses import dataclass

__all__ = ["Limits", "apply"]

MIB = 2**20
CORRUPT = 65
"""Exit code for bytes that are not a trace."""
TOO_LARGE = 70
"""Exit code for a trace that needs more memory than the limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one child process; a trace of 250 MiB needs about 30 s and twice its size."""

    memory_bytes: int | None = None
    """Address space; None for 512 MiB and four times the size of the trace, at most 8 GiB."""
    cpu_s: int = 300
    deadline_s: float = 900.0

    def memory_for(self, trace_bytes: int) -> int:
        """Return the address space for a trace."""
        return self.memory_bytes or min(512 * MIB + 4 * trace_bytes, 8192 * MIB)


def apply(memory_bytes: int, cpu_s: int, output_bytes: int) -> None:
    """Limit this process for good: address space, processor time, size of files it writes, no core dump."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, output_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        bounded = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (bounded, bounded))
