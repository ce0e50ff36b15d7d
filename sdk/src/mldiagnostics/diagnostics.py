"""Report problems on the logger `mldiagnostics`, each kind once.

A library inside a training job must not raise and must not flood the log: a problem that occurs a million times is
logged once and counted. The root logger belongs to the application and is not changed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

LOGGER = logging.getLogger("mldiagnostics")
LOGGER.parent = logging.getLogger("google_cloud_mldiagnostics")
"""Programs for Google's SDK set the level and the handlers of that name; it passes records on to the root."""

_lock = threading.RLock()  # a signal handler may interrupt a warning
_counts: dict[str, int] = {}


def warn_once(key: str, message: str, *, level: int = logging.WARNING) -> None:
    """Log `message` at the first occurrence of `key`, and count every occurrence.

    Args:
        key: Kind of the problem, of a bounded set; variable parts belong in the message.
        message: Text of the log entry.
        level: Level of the log entry.
    """
    with _lock:
        seen = _counts.get(key, 0)
        _counts[key] = seen + 1
    with contextlib.suppress(Exception):  # of the application's handlers
        if not seen:
            LOGGER.log(level, "%s", _safe(message))
        elif LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s (time %d)", _safe(message), seen + 1)


def warn_ignored(
    function: str, source: Callable[..., Any], extra: Collection[object], unknown: Collection[str]
) -> None:
    """Warn once about arguments that a function does not have and ignores.

    Args:
        function: The function as users write it, such as `xprof.start`.
        source: The function itself, for its parameters.
        extra: Positional arguments after the last parameter.
        unknown: Names of keyword arguments.
    """
    from mldiagnostics.text.suggest import parameters, unknown_parameters  # noqa: PLC0415 - only after a mistake

    known = parameters(source)
    if unknown:
        warn_once(f"{function}-parameters", unknown_parameters(function, unknown, known))
    if extra:
        problem = f"too many positional arguments, the last {len(extra)} ignored"
        warn_once(f"{function}-arguments", f"{function}: {problem}; the parameters are {', '.join(known) or 'none'}")


def counts() -> dict[str, int]:
    """Return the number of occurrences of each kind of problem in this process."""
    with _lock:
        return dict(_counts)


def detail(message: str) -> None:
    """Log `message` at level DEBUG."""
    with contextlib.suppress(Exception):  # of the application's handlers
        LOGGER.debug("%s", _safe(message))


def announce(message: str) -> None:
    """Show a line as a log entry, or on standard error without a handler."""
    with contextlib.suppress(Exception):  # of the application's handlers, or of a standard error that is closed
        if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
            LOGGER.info("%s", _safe(message))
        elif LOGGER.level <= logging.INFO and sys.stderr is not None:  # the application has not silenced this logger
            print(f"mldiagnostics: {_safe(message)}", file=sys.stderr, flush=True)  # noqa: T201 - no handler is there


def _safe(message: str) -> str:
    """Return the message without control characters and credentials."""
    if "://" in message:
        from mldiagnostics.text.redaction import redact  # noqa: PLC0415 - rarely needed

        message = redact(message)
    return printable(message)


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - a thread of the parent may hold the old lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
