"""The volume's bytes that the journals of each namespace use; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.reports.run_key import RunKey


class JournalSize(NamedTuple):
    """Bytes of the journal of one run."""

    state: int = 0
    """Replaced by each write."""
    events: int = 0
    """Extended by each write."""


class VolumeShares:
    """Journals share the volume by namespace.

    The journals of a namespace may use as much as is left free. So one namespace fills at most half of the volume, and
    there is always room for another one. The journals of runs that are in memory count as they are written, all others
    as they were counted on the volume.
    """

    def __init__(self) -> None:
        self._sizes: dict[RunKey, JournalSize] = {}
        self._in_memory = Counter[str]()
        self._others = Counter[str]()
        self._exceeded = set[str]()

    def admits(self, namespace: str, free: int | None) -> bool:
        """Return whether the journals of a namespace may grow.

        Args:
            namespace: The namespace.
            free: Free bytes of the volume; None if the storage has no limit.
        """
        return free is None or self._in_memory[namespace] + self._others[namespace] <= free

    def is_first_excess(self, namespace: str, *, admitted: bool) -> bool:
        """Note whether a namespace was admitted; return whether it newly is not."""
        if admitted:
            self._exceeded.discard(namespace)
            return False
        is_first = namespace not in self._exceeded
        self._exceeded.add(namespace)
        return is_first

    def counted(self, stored: Mapping[RunKey, int]) -> None:
        """Set the bytes of all journals on the volume.

        Those of runs in memory are known better.
        """
        self._others = Counter()
        for key, size in stored.items():
            if key not in self._sizes:
                self._others[key.namespace] += size

    def restored(self, key: RunKey, size: JournalSize) -> None:
        """Set the size of a journal that was read into the memory."""
        if key not in self._sizes:
            self._others[key.namespace] = max(0, self._others[key.namespace] - sum(size))
        self._set(key, size)

    def written(self, key: RunKey, change: JournalSize) -> None:
        """Count a write: the new state, and the events that were added."""
        self._set(key, JournalSize(change.state, self._sizes.get(key, JournalSize()).events + change.events))

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run; its files stay, and count."""
        size = sum(self._sizes.pop(key, ()))
        self._in_memory[key.namespace] -= size
        self._others[key.namespace] += size

    def _set(self, key: RunKey, size: JournalSize) -> None:
        self._in_memory[key.namespace] += sum(size) - sum(self._sizes.get(key, ()))
        self._sizes[key] = size
