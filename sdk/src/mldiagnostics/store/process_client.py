"""The client of a bucket, which belongs to the process that made it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Client = TypeVar("Client")


class ProcessClient(Generic[Client]):
    """A client that is made on first use, and anew in a process that was forked later.

    Connections of two processes would mix their requests. All threads may use it.

    Args:
        connect: Makes the client.
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._made: tuple[int, Client] | None = None

    def get(self) -> Client:
        """Return the client of this process."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                self._made = (os.getpid(), self._connect())
            return self._made[1]

    def forget(self) -> None:
        """Make another client on the next use, as after its credentials have expired."""
        self._made = None
