"""The watched runs: passes each one on, and keeps only their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_kube.cache.object_store import key_of

from mldiagnostics_operator.runs.keys import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class RunStore:
    """The store of an informer of runs.

    Args:
        seen: Receives each new or changed object.
        left: Receives the key of each object that was deleted or has ended.
    """

    def __init__(self, seen: Callable[[Mapping[str, Any]], None], left: Callable[[ObjectKey], None]) -> None:
        self._seen = seen
        self._left = left
        self._keys: set[str] = set()
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, item: Mapping[str, Any]) -> None:
        """Pass an object on."""
        self._keys.add(key_of(item))
        self._seen(item)

    def remove(self, item: Mapping[str, Any]) -> None:
        """Pass on that an object left."""
        self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Pass on that all objects but these left."""
        for key in self._keys - keys:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._keys.discard(key)
        namespace, _, name = key.partition("/")
        self._left(ObjectKey(namespace, name))
