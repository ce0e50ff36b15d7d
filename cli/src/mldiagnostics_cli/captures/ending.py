"""The end of a capture: its exit code, and the session to open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from mldiagnostics.locations import is_bucket

from mldiagnostics_cli.interruption import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEnd:
    """Result of a capture whose outcomes were printed."""

    exit_code: int
    directory: str = ""
    """Log directory of the traces, a path or URL; empty if there are none."""
    session: str = ""
    namespace: str = ""
    """Namespace of a capture in a cluster."""
    is_diagnosed: bool = False
    """Whether the verdict of the operator was printed."""


STATE_COLOURS = {"Captured": "\x1b[32m", "Failed": "\x1b[31m", "Skipped": "\x1b[33m", "Cancelled": "\x1b[33m"}
"""Colours of the states of targets; here, because a capture by address does not load the client of a cluster."""

CaptureWork = Callable[[Interruption], Coroutine[Any, Any, CaptureEnd]]
"""Captures once and prints the outcomes."""


def opening_command(directory: str) -> str:
    """Return the command that opens a log directory.

    XProf reads no bucket but one of Google Cloud: a server of `mldiag xprof` copies the sessions of the others.

    >>> opening_command("profiles"), opening_command("s3://runs/a")
    ('xprof --logdir profiles', 'mldiag xprof create --open s3://runs/a')
    """
    is_read = not is_bucket(directory) or directory.startswith("gs://")
    reader = "xprof --logdir" if is_read else "mldiag xprof create --open"
    return f"{reader} {shlex.quote(directory)}"
