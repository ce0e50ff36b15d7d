"""The lag of the watch: changes that it has not delivered yet.

An idle watch and a dead one look alike from inside, so the age of the last event says nothing. The objects in the API
server are therefore listed now and then and compared with the delivered ones.
"""

from collections.abc import Mapping
from typing import Any


class WatchLag:
    """Compares the delivered objects with the listed ones; versions are opaque."""

    def __init__(self) -> None:
        self._delivered: dict[str, str] = {}
        self._missing: dict[str, tuple[str | None, float]] = {}

    def observe(self, body: Mapping[str, Any], event: str) -> None:
        """Record an event of the watch: an object `seen`, or `gone` (deleted or finished)."""
        uid = body["metadata"]["uid"]
        if event == "gone":
            self._delivered.pop(uid, None)
        else:
            self._delivered[uid] = body["metadata"]["resourceVersion"]

    def compare(self, listed: Mapping[str, str], now: float) -> float:
        """Return for how many seconds the oldest change in `listed` has been missing.

        `listed` maps uid to version. A version that differs from the delivered one may also be older than it, so it
        counts only from the moment it is first missed until anything newer is delivered for that object.
        """
        missing: dict[str, tuple[str | None, float]] = {}
        for uid, version in listed.items():
            delivered = self._delivered.get(uid)
            if delivered == version:
                continue
            known = self._missing.get(uid)
            missing[uid] = known if known is not None and known[0] == delivered else (delivered, now)
        self._missing = missing
        return max((now - since for _, since in missing.values()), default=0.0)

    def reset(self) -> None:
        """Forget the missing changes: without an API server the watch cannot deliver them."""
        self._missing = {}
