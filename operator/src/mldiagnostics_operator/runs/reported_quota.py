"""Limits of the objects that reports create in each namespace; pure."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_UNFINISHED: Final = 1000
"""Unfinished reported runs of a namespace; runs of workloads do not count."""
MAX_CREATED: Final = 1000
"""Reported runs of a namespace that are created within `WINDOW_S`: ended ones are deleted only now and then."""
WINDOW_S: Final = 3600.0


class ReportedRunQuota:
    """Counts the runs that have no workload, by namespace.

    Any token may report any number of run ids, and each becomes an object.
    """

    def __init__(self) -> None:
        self._unfinished = Counter[str]()
        self._created: dict[str, deque[float]] = {}
        self._exceeded: dict[str, float] = {}
        """When each namespace exceeded its share, until a window later."""

    def recount(self, namespaces: Iterable[str], now_s: float) -> None:
        """Set the unfinished reported runs.

        Args:
            namespaces: The namespace of each of them.
            now_s: Current time in seconds, of any clock.
        """
        self._unfinished = Counter(namespaces)
        before_s = now_s - WINDOW_S
        for namespace, times in list(self._created.items()):
            while times and times[0] <= before_s:
                times.popleft()
            if not times:
                del self._created[namespace]
        self._exceeded = {name: at for name, at in self._exceeded.items() if at > before_s}

    def admits(self, namespace: str) -> bool:
        """Return whether a namespace may have another run."""
        created = len(self._created.get(namespace, ()))
        return self._unfinished[namespace] < MAX_UNFINISHED and created < MAX_CREATED

    def note_created(self, namespace: str, now_s: float) -> None:
        """Count a new run."""
        self._unfinished[namespace] += 1
        self._created.setdefault(namespace, deque()).append(now_s)

    def is_first_excess(self, namespace: str, now_s: float) -> bool:
        """Note a namespace without room; return whether it is new within the window."""
        if namespace in self._exceeded:
            return False
        self._exceeded[namespace] = now_s
        return True
