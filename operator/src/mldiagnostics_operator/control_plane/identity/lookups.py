"""Look-ups at the API server: bounded, in turn between clients, with a deadline."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mldiagnostics_operator.control_plane.limits import (
    LOOKUP_S,
    LOOKUPS,
    LOOKUPS_OF_CLIENT,
    WAITING_LOOKUPS,
    WAITING_LOOKUPS_OF_CLIENT,
)
from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Overloaded(Exception):
    """The control plane cannot do this now; try again later."""


class Lookups:
    """Turns of clients at look-ups; a flood of one client leaves turns for the others.

    Args:
        looked_up: Called with the kind of each look-up, for metrics.
    """

    def __init__(self, looked_up: Callable[[str], None] = lambda _: None) -> None:
        self._looked_up = looked_up
        self._slots = FairSlots(LOOKUPS, per_namespace=LOOKUPS_OF_CLIENT)
        self._waiting = Counter[str]()

    @asynccontextmanager
    async def turn(self, client: str, kind: str) -> AsyncIterator[None]:
        """Hold a turn during the block, which ends within `LOOKUP_S`.

        Args:
            client: The client whose turn it is.
            kind: Kind of the look-up, for the metric.

        Raises:
            Overloaded: Too many wait, or the API server takes too long.
        """
        # Each client may wait as often as it leaves places free, so that there is always one for another client.
        free = WAITING_LOOKUPS - self._waiting.total()
        if self._waiting[client] >= min(free, WAITING_LOOKUPS_OF_CLIENT):
            raise Overloaded("too many of this client's reports wait for a look-up; try again later")
        self._waiting[client] += 1
        try:
            async with self._slots.slot(client):
                try:
                    async with asyncio.timeout(LOOKUP_S):
                        self._looked_up(kind)
                        yield
                except TimeoutError as error:
                    raise Overloaded(f"the API server took longer than {LOOKUP_S:g} s; try again later") from error
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
