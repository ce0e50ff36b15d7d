"""The monitor's process; it has low priority and ends with its parent."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import select
import signal
import threading
from pathlib import Path
from typing import Any

from mldiagnostics.diagnostics import LOGGER
from mldiagnostics.goodput.monitor.assignment import Assignment, line
from mldiagnostics.goodput.monitor.inbox import Inbox

_SOCKET = 0
_NICENESS = 10
_START_TIMEOUT_S = 60.0
_EXIT_GRACE_S = 30.0
"""Seconds after the last upload's timeout in which the process must exit, even if it hangs."""

_POLL_MS = 60_000
_HANGUP = getattr(select, "POLLRDHUP", select.POLLHUP)


def main() -> None:
    """Serve the parent at the other end of standard input."""
    for job_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(job_signal, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    parent = _Parent()
    LOGGER.addHandler(parent)
    LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
    inbox = Inbox(_SOCKET)
    with contextlib.suppress(EOFError):
        assignment = Assignment.from_json(inbox.next(_START_TIMEOUT_S) or {})
        timeout_s = (assignment.flush_s or 0.0) + _EXIT_GRACE_S
        threading.Thread(target=_exit_after_parent, args=(timeout_s,), daemon=True).start()
        try:
            _serve(assignment, inbox, parent)
        except Exception as error:
            LOGGER.error(
                "job %s: goodput is not monitored because of a bug in mldiagnostics; please report it: %r",
                assignment.job,
                error,
            )
            raise


def _serve(assignment: Assignment, inbox: Inbox, parent: _Parent) -> None:
    from mldiagnostics.goodput.exports.selection import open_exports  # noqa: PLC0415 - errors of the import are logged
    from mldiagnostics.goodput.monitor.reading import LogFollower  # noqa: PLC0415 - the same
    from mldiagnostics.goodput.monitor.worker import Worker  # noqa: PLC0415 - the same

    Worker(assignment, LogFollower(assignment), open_exports(assignment), parent.reply).serve(inbox)


def _exit_after_parent(seconds: float) -> None:
    """Wait until the parent ends; then exit within `seconds`, even if a library hangs."""
    parent, hangup = os.getppid(), select.poll()
    hangup.register(_SOCKET, _HANGUP)
    while not hangup.poll(_POLL_MS) and os.getppid() == parent:
        pass
    faulthandler.dump_traceback_later(seconds, exit=True, file=Path(os.devnull).open("w"))  # noqa: SIM115 - open until exit


class _Parent(logging.Handler):
    """Sends log messages and replies to the parent."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._send_lock = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:  # type: ignore[explicit-override]  # not in Python 3.10
        """Send a log message."""
        self._send({"say": record.getMessage(), "level": record.levelno})

    def reply(self, number: int, *, success: bool) -> None:
        """Send the reply to a request."""
        self._send({"done": number, "well": success})

    def _send(self, message: dict[str, Any]) -> None:
        with self._send_lock, contextlib.suppress(OSError):
            data = line(message)
            while data:
                data = data[os.write(_SOCKET, data) :]


if __name__ == "__main__":
    main()
