"""What the monitor's process is told by its parent, by lines, with the end of the parent as the last word."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

__all__ = ["Inbox"]

_LOOK_S = 5.0
"""How often to look whether the parent lives: a child that it forked may hold the other end of the socket open."""


class Inbox:
    """Reads messages from a file descriptor."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._parent = os.getppid()
        self._lines: list[bytes] = []
        self._rest = b""

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next message, None if there is none in time. Raises `EOFError` when the parent is gone."""
        deadline = time.monotonic() + timeout_s
        while not self._lines:
            left_s = deadline - time.monotonic()
            readable, _, _ = select.select([self._file], [], [], max(0.0, min(left_s, _LOOK_S)))
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
