"""Messages from the parent to the monitor's process, one per line."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

_POLL_S = 5.0
"""Seconds between checks of the parent: its forked children may keep the socket open after its end."""


class Inbox:
    """Reads messages from a file descriptor."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._parent = os.getppid()
        self._lines: list[bytes] = []
        self._rest = b""

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next message, or None after the timeout.

        Raises:
            EOFError: the parent has ended.
        """
        deadline = time.monotonic() + timeout_s
        while not self._lines:
            left_s = deadline - time.monotonic()
            readable, _, _ = select.select([self._file], [], [], max(0.0, min(left_s, _POLL_S)))
            if readable:
                self._read()
            elif os.getppid() != self._parent:
                raise EOFError
            elif left_s <= 0:
                return None
        message: dict[str, Any] = json.loads(self._lines.pop(0))
        return message

    def _read(self) -> None:
        data = os.read(self._file, 65536)
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines += lines
