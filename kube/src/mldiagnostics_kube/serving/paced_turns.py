"""Turns at a limited rate, which clients get one after the other."""

import asyncio
from collections import OrderedDict, deque
from time import monotonic


class PacedTurns:
    """Turns for work that holds the event loop, such as TLS handshakes.

    The rest of the time is left for others.

    Waiting clients get turns in a circle, so that a client with many requests waits for itself.

    Args:
        per_second: Turns of all clients.
        burst: Turns at a time after a pause, or after a busy loop has missed as many.

    Example:
        turns = PacedTurns(300)
        await turns.take("10.0.0.7")
    """

    def __init__(self, per_second: float, *, burst: int = 8) -> None:
        self._pause_s = 1 / per_second
        self._burst_s = (burst - 1) * self._pause_s
        self._next_s = 0.0
        """When the next turn may begin."""
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, client: str) -> None:
        """Wait for a turn of this client; a waiter that is cancelled takes none."""
        if not self._waiting and monotonic() >= self._next_s:
            self._count()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._set_timer()
        await turn

    def _set_timer(self) -> None:
        if self._timer is None and self._waiting:
            wait_s = max(0.0, self._next_s - monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._give)

    def _count(self) -> None:
        self._next_s = max(self._next_s, monotonic() - self._burst_s) + self._pause_s

    def _give(self) -> None:
        """Give the next turn."""
        self._timer = None
        while self._waiting:
            client, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns
            if not turn.done():  # its waiter was not cancelled
                turn.set_result(None)
                self._count()
                break
        self._set_timer()
