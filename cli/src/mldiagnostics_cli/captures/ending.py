"""The end of a capture: its exit code, and the session to open."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

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
