"""The monitor's process: low priority, deaf to signals that are meant for the job, ends when its parent does."""

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
_START_S = 60.0
_LAST_WORDS_S = 30.0
"""How much longer than a last upload the process may outlive its parent, even where it hangs."""

_LOOK_MS = 60_000
_HANGS_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


def main() -> None:
    """Serve the parent at the other end of standard input."""
    for meant_for_the_job in (signal.SIGINT, signal.SIGTERM):
        signal.signal(meant_for_the_job, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    parent = _Parent()
    LOGGER.addHandler(parent)
    LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
    inbox = Inbox(_SOCKET)
    with contextlib.suppress(EOFError):
        assignment = Assignment.from_json(inbox.next(_START_S) or {})
        patience_s = (assignment.flush_s or 0.0) + _LAST_WORDS_S
        threading.Thread(target=_outlive_parent, args=(patience_s,), daemon=True).start()
        try:
            _serve(assignment, inbox, parent)
        except Exception as error:
            LOGGER.error(
                "%s is not monitored, by a fault in mldiagnostics, please report it: %r", assignment.job, error
            )
            raise


def _serve(assignment: Assignment, inbox: Inbox, parent: _Parent) -> None:
    from mldiagnostics.goodput.exports.selection import open_exports  # noqa: PLC0415 - faults in it are told
    from mldiagnostics.goodput.monitor.reading import LogFollower  # noqa: PLC0415 - the same
    from mldiagnostics.goodput.monitor.worker import Worker  # noqa: PLC0415 - the same

    Worker(assignment, LogFollower(assignment), open_exports(assignment), parent.answer).serve(inbox)


def _outlive_parent(seconds: float) -> None:
    """Wait until the parent is gone; then have the process end in time, whatever its libraries do."""
    parent, hung_up = os.getppid(), select.poll()
    hung_up.register(_SOCKET, _HANGS_UP)
    while not hung_up.poll(_LOOK_MS) and os.getppid() == parent:
        pass
    faulthandler.dump_traceback_later(seconds, exit=True, file=Path(os.devnull).open("w"))  # noqa: SIM115 - for good


class _Parent(logging.Handler):
    """Tells the parent lines for people, and answers."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._one_at_a_time = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:  # type: ignore[explicit-override]  # not in Python 3.10
        """Tell a line."""
        self._send({"say": record.getMessage(), "level": record.levelno})

    def answer(self, number: int, *, well: bool) -> None:
        """Answer a question."""
        self._send({"done": number, "well": well})

    def _send(self, message: dict[str, Any]) -> None:
        with self._one_at_a_time, contextlib.suppress(OSError):
            data = line(message)
            while data:
                data = data[os.write(_SOCKET, data) :]


if __name__ == "__main__":
    main()
