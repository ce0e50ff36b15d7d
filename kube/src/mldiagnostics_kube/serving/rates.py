"""Rates of clients: token buckets in bounded memory; pure."""

from __future__ import annotations

from collections import OrderedDict


class RateLimits:
    """A token bucket for each client, by any key.

    Clients beyond `most` replace those that were quiet for the longest time.

    Args:
        per_second: Requests that a client may repeat.
        burst: Requests that it may send at once.
        most: Clients in memory.
    """

    def __init__(self, per_second: float, burst: float, *, most: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._buckets: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: object, now: float) -> float:
        """Take one request of a client; return 0, or the seconds to wait for the next one."""
        left, since = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_second
