"""Problems told to people: one line for each on the logger `mldiagnostics`, counted from then on, never raised.

A library that runs inside somebody's training must neither raise nor flood: what goes wrong a million times is said
once. The root logger is the application's and stays as it is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading

from mldiagnostics.text.terminal import printable

LOGGER = logging.getLogger("mldiagnostics")

_lock = threading.RLock()  # a signal's handler may complain while its thread does
_counts: dict[str, int] = {}


def warn_once(key: str, message: str, *, level: int = logging.WARNING) -> None:
    """Say `message` the first time that `key` comes, and count every time.

    `key` names the kind of problem, from a fixed vocabulary: a text that varies without end belongs in the message.
    """
    with _lock:
        seen = _counts.get(key, 0)
        _counts[key] = seen + 1
    with contextlib.suppress(Exception):  # of the application's handlers
        if not seen:
            LOGGER.log(level, "%s", _safe(message))
        elif LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s (time %d)", _safe(message), seen + 1)


def counts() -> dict[str, int]:
    """Return how often each kind of problem has come in this process."""
    with _lock:
        return dict(_counts)


def detail(message: str) -> None:
    """Say `message` to people who look for details: with the logger at DEBUG."""
    with contextlib.suppress(Exception):  # of the application's handlers
        LOGGER.debug("%s", _safe(message))


def announce(message: str) -> None:
    """Show a line that people look for: as a log entry where somebody reads those, else on standard error."""
    with contextlib.suppress(Exception):  # of the application's handlers, or of a standard error that is closed
        if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
            LOGGER.info("%s", _safe(message))
        elif LOGGER.level <= logging.INFO and sys.stderr is not None:  # nobody asked this logger to be quiet
            print(f"mldiagnostics: {_safe(message)}", file=sys.stderr, flush=True)  # noqa: T201 - no handler would


def _safe(message: str) -> str:
    """Return the message without control characters and credentials, which names and URLs in it may have."""
    if "://" in message and "@" in message:
        from mldiagnostics.text.redaction import redact  # noqa: PLC0415 - rarely needed

        message = redact(message)
    return printable(message)


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may hold the old one, for ever
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
