"""Metadata of one kind's objects, cut to what decisions need and kept as JSON text: a fifth of what dicts take."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson
from mldiagnostics_api.names import GROUP

Object = Mapping[str, Any]

_OURS: Final = f"{GROUP}/"
# Besides the text: its key, the dictionary's entry and the heads of the objects.
_OVERHEAD_BYTES: Final = 300
# Whoever may create workloads can give each a megabyte of labels; the room is for everybody.
_LARGEST_BYTES: Final = 16 * 1024


@dataclass(slots=True)
class MemoryBudget:
    """How many bytes all shelves together may take, and how many they do."""

    limit_bytes: int
    taken_bytes: int = 0

    def take(self, size_bytes: int) -> bool:
        """Take so much more, or nothing if there is not so much left."""
        if self.taken_bytes + size_bytes > self.limit_bytes:
            return False
        self.taken_bytes += size_bytes
        return True


class ObjectStore:
    """The objects of one kind, by namespace and name."""

    def __init__(self, room: MemoryBudget) -> None:
        self._room = room
        self._texts: dict[str, bytes] = {}
        self.left_out = 0
        """Changes that found no room; what they told is not here."""

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, namespace: str, name: str) -> Object | None:
        """Give what is kept of an object, for reading only; None if nothing is."""
        text = self._texts.get(f"{namespace}/{name}")
        return None if text is None else _parsed(text)

    def put(self, item: Object) -> None:
        """Keep an object in place of its former version, unless it is very large or there is no room."""
        metadata = item["metadata"]
        key = _key(metadata)
        self._remove(key)
        text = orjson.dumps(cut(item))
        if len(text) <= _LARGEST_BYTES and self._room.take(len(text) + _OVERHEAD_BYTES):
            self._texts[key] = text
        else:
            self.left_out += 1

    def remove(self, item: Object) -> None:
        """Forget an object."""
        self._remove(_key(item["metadata"]))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all but these."""
        for key in self._texts.keys() - keys:
            self._remove(key)

    def _remove(self, key: str) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._room.taken_bytes -= len(text) + _OVERHEAD_BYTES


def key_of(item: Object) -> str:
    """Name an object among those of its kind."""
    return _key(item["metadata"])


def cut(item: Object) -> dict[str, Any]:
    """Cut an object to what is read of it: identity, labels, our annotations and the controlling owner."""
    metadata = item["metadata"]
    kept = {part: metadata[part] for part in ("name", "namespace", "uid", "creationTimestamp") if part in metadata}
    if labels := metadata.get("labels"):
        kept["labels"] = labels
    if annotations := {k: v for k, v in (metadata.get("annotations") or {}).items() if k.startswith(_OURS)}:
        kept["annotations"] = annotations
    if owners := [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]:
        kept["ownerReferences"] = owners
    return {"metadata": kept}


@lru_cache(maxsize=1024)  # the pods of one workload come together
def _parsed(text: bytes) -> Object:
    parsed: Object = orjson.loads(text)
    return parsed


def _key(metadata: Object) -> str:
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
