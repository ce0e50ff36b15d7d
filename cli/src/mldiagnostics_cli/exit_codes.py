"""Exit codes of every command."""

from __future__ import annotations

from typing import Final

FAILED: Final = 1
"""Nothing was done, or what was waited for has failed."""

PARTIAL: Final = 2
"""A part was done: some hosts of a capture, some runs of a list."""

INVALID_USAGE: Final = 64
"""The command or an option is not valid; EX_USAGE of sysexits.h."""

INTERRUPTED: Final = 130
"""Ended by Ctrl-C."""

CLOSED_PIPE: Final = 141
"""The reader of standard output has ended, as `head` does."""
