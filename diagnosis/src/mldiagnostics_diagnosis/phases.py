"""The phases of a step; each instant of a step belongs to exactly one."""

from __future__ import annotations

from typing import Literal, get_args

Phase = Literal[
    "input",
    "host",
    "callback",
    "collection",
    "compilation",
    "transfer",
    "checkpoint",
    "compute",
    "collective",
    "idle",
]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""`collection` is garbage collection of Python; `idle` is time that nothing in the trace explains."""
