"""The monitor's process as the training process sees it: begun, spoken with, waited for, and killed if need be.

It is a new Python and no fork, since JAX has threads. It is in a session of its own, so that Ctrl-C and signals to the
job leave it time for a last upload, and ends with the socket that its parent holds. Nothing here waits longer than it
is told.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.monitor.assignment import line

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MonitorProcess"]

_PROGRAM = (
    "import os, sys; sys.path[:] = sys.argv.pop().split(os.pathsep); "
    "from mldiagnostics.goodput.monitor.__main__ import main; main()"
)
"""Finds this package wherever its parent did; with `-m` a module of the working directory could come before others."""

_NO_ACCELERATOR = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
"""It loads no framework; should a site's start-up files do, it takes no device from the training."""

_REAP_S = 1.0
_NO_SIGPIPE = getattr(socket, "MSG_NOSIGNAL", 0)  # the program may have reset that signal to end the process


class MonitorProcess:
    """One process. `said` is called with each line for people and its level, `ended` once with what it ended by."""

    def __init__(self, *, said: Callable[[str, int], object], ended: Callable[[MonitorProcess, int], object]) -> None:
        """Begin it. Raises `OSError` or `RuntimeError` if the system has no room for it."""
        self._said, self._ended = said, ended
        self._answers: dict[int, SimpleQueue[bool | None]] = {}
        self._asked = 0
        self._over = False
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, "mldiagnostics.goodput.monitor", os.pathsep.join(sys.path)],
                    env={**os.environ, **_NO_ACCELERATOR},
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            threading.Thread(target=self._listen, name="mldiagnostics-monitor", daemon=True).start()
        except BaseException:
            self._socket.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message; one that cannot be sent at once is lost, and so is a process that takes none."""
        with suppress(OSError):
            self._socket.send(line(message), socket.MSG_DONTWAIT | _NO_SIGPIPE)

    def ask(self, message: dict[str, Any], timeout_s: float) -> bool | None:
        """Send a message and wait for the answer; None if there is none in time, or the process ends before."""
        self._asked += 1
        number = self._asked
        answer: SimpleQueue[bool | None] = SimpleQueue()
        self._answers[number] = answer
        try:
            if self._over:
                return None
            self.tell({**message, "ask": number})
            return answer.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None
        finally:
            del self._answers[number]

    def end(self, timeout_s: float) -> None:
        """Have it end by itself within `timeout_s`, or kill it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it without a word more."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)

    def forget(self) -> None:
        """Let go of it in a forked child: it is the parent's, and must see when that ends."""
        self._socket.close()
        self._process.returncode = 0  # or a warning would come of a process that is none of the child's

    def _listen(self) -> None:
        rest = b""
        while True:
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for each in lines:
                self._hear(each)
        self._over = True
        for answer in list(self._answers.values()):
            answer.put(None)
        self._ended(self, self._process.wait())
        self._socket.close()

    def _hear(self, said: bytes) -> None:
        with suppress(ValueError, KeyError, TypeError):  # it may be of another version, or write nonsense
            message = json.loads(said)
            if "done" in message:
                self._answers[message["done"]].put(bool(message["well"]))
            else:
                self._said(str(message["say"]), int(message["level"]))


def deadline(timeout_s: float) -> Callable[[], float]:
    """Return what tells how many of the seconds are left."""
    end = time.monotonic() + timeout_s
    return lambda: max(0.0, end - time.monotonic())
