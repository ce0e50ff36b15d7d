from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest
from mldiagnostics.errors import AlreadyStored, StoreError
from mldiagnostics.store.gcs import GcsStore
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator.storage import Storage
from support.servers.emulator import running_emulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPEN = 4


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    opened = Storage(tmp_path)
    yield opened
    opened.close()


async def test_a_directory_is_below_the_volume(storage: Storage, tmp_path: Path) -> None:
    directory = storage.directory(Location.parse("volume:///a/b"))
    stored = await directory.put("plugins/x", b"trace")
    assert (stored.key, stored.bytes, stored.url) == ("plugins/x", 5, "volume:///a/b/plugins/x")
    assert (tmp_path / "a/b/plugins/x").read_bytes() == b"trace"
    assert await directory.read("plugins/x") == b"trace"
    assert [(entry.key, entry.bytes) for entry in await directory.list("plugins")] == [("plugins/x", 5)]
    with pytest.raises(AlreadyStored):
        await directory.put("plugins/x", b"other")
    await directory.put("plugins/x", b"other", replaces=b"trace".__eq__)
    assert await directory.delete("plugins/x")
    assert not await directory.delete("plugins/x")


async def test_a_link_on_the_volume_cannot_point_out_of_it(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/etc")
    with pytest.raises(StoreError):
        await storage.directory(Location.parse("volume:///a")).put("x", b"")


async def test_only_the_last_used_buckets_stay_open(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of tests before may end at any time, and are not counted."""

    def stores() -> list[GcsStore]:
        gc.collect()
        return [item for item in gc.get_objects() if type(item) is GcsStore]

    def opened() -> int:
        return sum(item not in others for item in stores())

    others = WeakSet(stores())
    monkeypatch.setattr("mldiagnostics_operator.storage.OPEN_STORES", OPEN)
    with running_emulator() as emulator:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
        for number in range(OPEN + 3):
            with pytest.raises(StoreError):
                await storage.directory(Location.parse(f"gs://bucket-{number}/x")).list("")
            if number == 0:
                assert opened() == 1
        assert opened() == OPEN


def test_a_path_in_the_pod_is_rejected(storage: Storage) -> None:
    with pytest.raises(ValueError, match="in the pod"):
        storage.directory(Location.parse("/profiles"))


async def test_a_scheme_that_cannot_be_opened_is_a_problem_of_the_store(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(StoreError, match="gcs"):
        await storage.directory(Location.parse("gs://bucket/runs")).put("a", b"")
