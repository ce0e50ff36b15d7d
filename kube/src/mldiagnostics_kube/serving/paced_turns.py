"""Turns at a limited rate, which clients get one after the other."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple


class _WaitingTurn(NamedTuple):
    turn: asyncio.Future[bool]
    is_over: Callable[[], bool]


class PacedTurns:
    """Turns for work that holds the event loop, such as TLS handshakes.

    The rest of the time is left for others.

    Waiting clients get turns in a circle, so that a client with many requests waits for itself.

    Args:
        per_second: Turns of all clients.
        burst: Turns at a time after a pause, or after a busy loop has missed as many.

    Example:
        turns = PacedTurns(300)
        if await turns.take("10.0.0.7", is_over=lambda: is_closed(connection)):
            ...
    """

    def __init__(self, per_second: float, *, burst: int = 8) -> None:
        self._pause_s = 1 / per_second
        self._burst_s = (burst - 1) * self._pause_s
        self._next_s = 0.0
        """When the next turn may begin."""
        self._waiting: OrderedDict[str, deque[_WaitingTurn]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, client: str, *, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Wait for a turn of this client; a waiter that is cancelled takes none.

        Args:
            client: The client.
            is_over: Says when its turn has come whether it waits no longer; the next client has the turn then.

        Returns:
            Whether it has the turn.
        """
        if not self._waiting and monotonic() >= self._next_s:
            self._count()
            return True
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(_WaitingTurn(turn, is_over))
        self._set_timer()
        return await turn

    def _set_timer(self) -> None:
        if self._timer is None and self._waiting:
            wait_s = max(0.0, self._next_s - monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._give)

    def _count(self) -> None:
        self._next_s = max(self._next_s, monotonic() - self._burst_s) + self._pause_s

    def _give(self) -> None:
        """Give the turns that are due."""
        self._timer = None
        while self._waiting and monotonic() >= self._next_s:
            client, waiters = self._waiting.popitem(last=False)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[client] = waiters
            if waiter.turn.done():  # it was cancelled
                continue
            has_turn = not waiter.is_over()
            waiter.turn.set_result(has_turn)
            if has_turn:
                self._count()
        self._set_timer()
