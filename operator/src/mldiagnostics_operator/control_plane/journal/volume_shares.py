"""The volume's bytes that the journals of each namespace use; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mldiagnostics_api.reports.reported_run import RunKey


class JournalSize(NamedTuple):
    """Bytes of the journal of one run."""

    state: int = 0
    """Replaced by each write."""
    events: int = 0
    """Extended by each write."""


class VolumeShares:
    """Journals share the volume by namespace.

    The journals of a namespace may use as much as is left free. So one namespace fills at most half of the volume, and
    there is always room for another one. Files of runs that ended under a former leader do not count.
    """

    def __init__(self) -> None:
        self._sizes: dict[RunKey, JournalSize] = {}
        self._namespaces = Counter[str]()
        self._exceeded = set[str]()

    def admits(self, namespace: str, free: int | None) -> bool:
        """Return whether the journals of a namespace may grow.

        Args:
            namespace: The namespace.
            free: Free bytes of the volume; None if the storage has no limit.
        """
        return free is None or self._namespaces[namespace] <= free

    def is_first_excess(self, namespace: str, *, admitted: bool) -> bool:
        """Note whether a namespace was admitted; return whether it newly is not."""
        if admitted:
            self._exceeded.discard(namespace)
            return False
        is_first = namespace not in self._exceeded
        self._exceeded.add(namespace)
        return is_first

    def restored(self, key: RunKey, size: JournalSize) -> None:
        """Set the size of a journal that was read."""
        self._namespaces[key.namespace] += sum(size) - sum(self._sizes.get(key, JournalSize()))
        self._sizes[key] = size

    def written(self, key: RunKey, change: JournalSize) -> None:
        """Count a write: the new state, and the events that were added."""
        self.restored(key, JournalSize(change.state, self._sizes.get(key, JournalSize()).events + change.events))

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run; its files stay, and count."""
        self._sizes.pop(key, None)
