"""Text of a program on standard output, in the encoding of its reader."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.file_errors import file_problem
from mldiagnostics.text.terminal import encodable


def write_text(text: str, *, replace: str | None = None) -> bool:
    """Write a text to standard output; return false if its reader has left.

    Args:
        text: Lines, each with its end.
        replace: Error handler for characters that the encoding of the reader lacks; by default similar ones stand
            for them.

    Raises:
        ConfigurationError: standard output is closed, or cannot be written.

    Example:
        write_text(table(report))
    """
    output = opened()
    encoding = output.encoding or "utf-8"
    shown = text.encode(encoding, replace).decode(encoding) if replace else encodable(text, encoding)
    try:
        output.write(shown)
        output.flush()
    except OSError as error:
        reason = unwritable(error)
        if isinstance(error, BrokenPipeError):
            return False
        raise reason from error
    return True


def opened() -> TextIO:
    """Return standard output. Raises `ConfigurationError` if it is closed."""
    if sys.stdout is None:
        raise ConfigurationError("standard output: is closed; redirect it to a file")
    return sys.stdout


def unwritable(error: OSError) -> ConfigurationError:
    """Return the reason why standard output cannot be written; drop later output.

    Else the interpreter's own flush would fail again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ConfigurationError(f"standard output: cannot be written: {file_problem(error, 'write to another file')}")
