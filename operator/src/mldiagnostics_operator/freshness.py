"""Whether the watch keeps up with the API server: changes that the server has and the watch has not brought.

An idle watch and a dead one look alike from inside, so the age of the last event says nothing. What stands in the API
server is listed now and then and compared with what was delivered.
"""

from collections.abc import Mapping
from typing import Any


class Freshness:
    """Compares what the watch delivered with what the API server lists; versions are opaque."""

    def __init__(self) -> None:
        self._delivered: dict[str, str] = {}
        self._missing: dict[str, tuple[str | None, float]] = {}

    def observe(self, body: Mapping[str, Any], event: str) -> None:
        """Note an event of the watch: an object `seen`, or `gone` (deleted, or finished)."""
        uid = body["metadata"]["uid"]
        if event == "gone":
            self._delivered.pop(uid, None)
        else:
            self._delivered[uid] = body["metadata"]["resourceVersion"]

    def compare(self, listed: Mapping[str, str], now: float) -> float:
        """Return for how many seconds the oldest change in `listed` (uid -> version) has been missing.

        A version that is not the delivered one may also be older than it: it counts only from the moment it is first
        missed until anything newer is delivered for that object.
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

    def forgive(self) -> None:
        """Forget what is missing: while the API server does not answer, the watch cannot bring it."""
        self._missing = {}
