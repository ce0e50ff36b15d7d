"""The training process's handle to the monitor's process.

The monitor is a new Python process, not a fork, because JAX has threads. It runs in its own session, so that Ctrl-C and
signals to the job leave it time for a last upload. It ends when the parent's socket closes. No method waits longer than
its timeout.
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


_PROGRAM = (
    "import os, sys; sys.path[:] = sys.argv.pop().split(os.pathsep); "
    "from mldiagnostics.goodput.monitor.__main__ import main; main()"
)
"""Imports this package from the parent's path; `-m` would prefer modules of the working directory."""

_NO_ACCELERATOR = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
"""If a site's start-up files load a framework, the monitor must not take a device from the training."""

_REAP_S = 1.0
_NO_SIGPIPE = getattr(socket, "MSG_NOSIGNAL", 0)  # the program may have reset that signal to end the process


class MonitorProcess:
    """One monitor process.

    Args:
        on_message: called with each log message and its level.
        on_end: called once with the exit status.
    """

    def __init__(
        self, *, on_message: Callable[[str, int], object], on_end: Callable[[MonitorProcess, int], object]
    ) -> None:
        """Start the process; raise `OSError` or `RuntimeError` if the system cannot."""
        self._on_message, self._on_end = on_message, on_end
        self._replies: dict[int, SimpleQueue[bool | None]] = {}
        self._request_count = 0
        self._has_ended = False
        self._socket, child_socket = socket.socketpair()
        try:
            with child_socket:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, "mldiagnostics.goodput.monitor", os.pathsep.join(sys.path)],
                    env={**os.environ, **_NO_ACCELERATOR},
                    stdin=child_socket.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            threading.Thread(target=self._receive, name="mldiagnostics-monitor", daemon=True).start()
        except BaseException:
            self._socket.close()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; drop it if it cannot be sent without waiting."""
        with suppress(OSError):
            self._socket.send(line(message), socket.MSG_DONTWAIT | _NO_SIGPIPE)

    def request(self, message: dict[str, Any], timeout_s: float) -> bool | None:
        """Send a message and return the reply; None on a timeout or if the process ends."""
        self._request_count += 1
        number = self._request_count
        reply: SimpleQueue[bool | None] = SimpleQueue()
        self._replies[number] = reply
        try:
            if self._has_ended:
                return None
            self.send({**message, "ask": number})
            return reply.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None
        finally:
            del self._replies[number]

    def stop(self, timeout_s: float) -> None:
        """Close the connection and wait for the end; kill the process after `timeout_s`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)

    def forget(self) -> None:
        """Drop the handle in a forked child: the process must see the parent's end."""
        self._socket.close()
        self._process.returncode = 0  # avoids a warning about a process that is not the child's

    def _receive(self) -> None:
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
                self._handle(each)
        self._has_ended = True
        for reply in list(self._replies.values()):
            reply.put(None)
        self._on_end(self, self._process.wait())
        self._socket.close()

    def _handle(self, received: bytes) -> None:
        with suppress(ValueError, KeyError, TypeError):  # invalid messages are ignored
            message = json.loads(received)
            if "done" in message:
                self._replies[message["done"]].put(bool(message["well"]))
            else:
                self._on_message(str(message["say"]), int(message["level"]))


def time_left(timeout_s: float) -> Callable[[], float]:
    """Return a function that returns the seconds left of the timeout."""
    end = time.monotonic() + timeout_s
    return lambda: max(0.0, end - time.monotonic())
