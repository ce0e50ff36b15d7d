"""Limits of the process that reads a trace, and exit codes of its problems."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MIB = 2**20
_PARENT_BYTES = 96 * MIB
"""Memory of the process that starts the readers."""
_LEAST_BYTES = 64 * MIB
CORRUPT = 65
"""Exit code for bytes that are not a trace."""
TOO_LARGE = 70
"""Exit code for a trace that needs more memory than the limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one child process.

    A trace of 250 MiB needs about 30 s and twice its size.
    """

    memory_bytes: int | None = None
    """Address space; None for 512 MiB and four times the size of the trace, at most 8 GiB."""
    cpu_s: int = 300
    deadline_s: float = 900.0

    def memory_for(self, trace_bytes: int) -> int:
        """Return the address space for a trace."""
        return self.memory_bytes or min(512 * MIB + 4 * trace_bytes, 8192 * MIB)


@dataclass(frozen=True, slots=True)
class Resources:
    """Processors and memory for all readers of a session together."""

    cpus: int
    memory_bytes: int | None = None
    """None if each reader has limits of its own alone."""

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Resources:
        """Return the resources of this machine, or of this container.

        A Job passes those of its container on.
        """
        cpus, memory = environment.get("MLDIAG_CPU_LIMIT"), environment.get("MLDIAG_MEMORY_LIMIT")
        return cls(int(cpus) if cpus else os.cpu_count() or 1, int(memory) if memory else None)

    def readers(self, traces: Sequence[int]) -> tuple[int, Limits]:
        """Return the number of parallel readers, and the limits of each.

        Sizes of the traces are in bytes.

        A container that exceeds its memory is killed with all its readers; a reader that exceeds its share ends alone.
        """
        if self.memory_bytes is None:
            return self.cpus, Limits()
        free = max(self.memory_bytes - _PARENT_BYTES, _LEAST_BYTES)
        usual = Limits().memory_for(max(traces, default=0))
        parallel = max(min(self.cpus, free // usual), 1)
        return parallel, Limits(memory_bytes=min(usual, free // parallel))


def apply(memory_bytes: int, cpu_s: int, output_bytes: int) -> None:
    """Limit this process permanently.

    Bounded are address space, processor time and the size of written files; there is no core dump.

    Beyond its processor time it ends by SIGXCPU, and by SIGKILL a second later.
    """
    for kind, limit, hard in (
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_FSIZE, output_bytes, output_bytes),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, most = resource.getrlimit(kind)
        unlimited = most == resource.RLIM_INFINITY
        resource.setrlimit(kind, (limit, hard) if unlimited else (min(limit, most), min(hard, most)))
