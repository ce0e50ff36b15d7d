"""A trial leaves a store as it was, and names the storage that does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import StoreError
from mldiagnostics.store import open_store
from mldiagnostics.store.trial import try_store

if TYPE_CHECKING:
    from pathlib import Path


def test_a_store_is_left_as_it_was(store_url: str) -> None:
    store = open_store(store_url)
    store.put("runs/kept", b"kept")
    assert try_store(store, store_url, folder="runs").startswith("mldiagnostics-store-check-")
    assert [entry.key for entry in store.list()] == ["runs/kept"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="File exists; remove the file that has the directory's name"):
        try_store(open_store(str(tmp_path / "file")), "file")
