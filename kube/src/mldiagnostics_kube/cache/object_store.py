"""A bounded store of object metadata as JSON text: a fifth of the memory of dicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson
from mldiagnostics_api.names import GROUP

Object = Mapping[str, Any]

_OURS: Final = f"{GROUP}/"
# Per object, besides the text: the key, the entry of the dict, and the object headers.
_OVERHEAD_BYTES: Final = 300
# Parsed, short labels take fifteen times the size of their text.
_PARSED_BYTES: Final = 2 * 1024
# A workload may have a megabyte of labels; one user must not fill the memory of all.
_LARGEST_BYTES: Final = 16 * 1024


@dataclass(slots=True)
class MemoryBudget:
    """Bytes that all stores together may use, and bytes in use."""

    limit_bytes: int
    taken_bytes: int = 0

    def take(self, size_bytes: int) -> bool:
        """Reserve bytes; return False and reserve none if they exceed the limit."""
        if self.taken_bytes + size_bytes > self.limit_bytes:
            return False
        self.taken_bytes += size_bytes
        return True


class ObjectStore:
    """The metadata of the objects of one kind, by namespace and name, within a budget."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._texts: dict[str, bytes] = {}
        self.left_out = 0
        """Changes that were dropped because the budget was spent or the object too large."""

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, namespace: str, name: str) -> Object | None:
        """Return the stored metadata of an object, read-only, or None.

        As long as the object does not change, the result is mostly the same object; never if it is large.
        """
        text = self._texts.get(f"{namespace}/{name}")
        if text is None:
            return None
        return _parse(text) if len(text) <= _PARSED_BYTES else orjson.loads(text)

    def put(self, item: Object) -> None:
        """Store an object in place of its former version, unless it exceeds a bound."""
        metadata = item["metadata"]
        key = _key(metadata)
        self._remove(key)
        text = orjson.dumps(cut(item))
        if len(text) <= _LARGEST_BYTES and self._budget.take(len(text) + _OVERHEAD_BYTES):
            self._texts[key] = text
        else:
            self.left_out += 1

    def remove(self, item: Object) -> None:
        """Remove an object."""
        self._remove(_key(item["metadata"]))

    def keep_only(self, keys: set[str]) -> None:
        """Remove all objects but these."""
        for key in self._texts.keys() - keys:
            self._remove(key)

    def _remove(self, key: str) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._budget.taken_bytes -= len(text) + _OVERHEAD_BYTES


def key_of(item: Object) -> str:
    """Return the key of an object: `<namespace>/<name>`."""
    return _key(item["metadata"])


def cut(item: Object) -> dict[str, Any]:
    """Reduce an object to identity, labels, our annotations and the controlling owner."""
    metadata = item["metadata"]
    kept = {part: metadata[part] for part in ("name", "namespace", "uid", "creationTimestamp") if part in metadata}
    if labels := metadata.get("labels"):
        kept["labels"] = labels
    if annotations := {k: v for k, v in (metadata.get("annotations") or {}).items() if k.startswith(_OURS)}:
        kept["annotations"] = annotations
    if owners := [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]:
        kept["ownerReferences"] = owners
    return {"metadata": kept}


@lru_cache(maxsize=512)  # the pods of one workload arrive together
def _parse(text: bytes) -> Object:
    parsed: Object = orjson.loads(text)
    return parsed


def _key(metadata: Object) -> str:
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
