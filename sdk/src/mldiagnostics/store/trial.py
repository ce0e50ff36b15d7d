"""A trial of a store by a small file that does not stay."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError

if TYPE_CHECKING:
    from mldiagnostics.store.model import Store


def try_store(store: Store, shown: str, *, folder: str = "") -> str:
    """Write, list, read and delete a small file; return its key below `folder`.

    In a bucket each of them needs a right of its own.

    Args:
        store: The store.
        shown: Its location in messages, as the user wrote it.
        folder: Directory of the store in which the file is written.

    Raises:
        StoreError: The store rejects one of them, or does not return what was written.
    """
    name = f"mldiagnostics-store-check-{uuid.uuid4().hex}"
    inner = f"{folder}/{name}" if folder else name
    key, content = f"{inner}/object", name.encode()
    store.put(key, content)
    try:
        with store.open(key) as file:
            if file.read() != content:
                raise StoreError(f"{shown}: a file has other bytes than were written; check the volume or the bucket")
        if [entry.key for entry in store.list(inner)] != [key]:
            raise StoreError(f"{shown}: a file that was written is not listed; check the volume or the bucket")
    finally:
        store.delete(key)
    return f"{name}/object"
