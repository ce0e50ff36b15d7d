"""Namespaces share the last tenth of the volume."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import StoreError, StoreFull
from mldiagnostics.layout import capture_record_key, trace_key
from mldiagnostics.store.tree import MAX_DEPTH
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator.captures import volume_share
from mldiagnostics_operator.captures.record import claim
from mldiagnostics_operator.captures.volume_share import VolumeShare, is_used_up
from mldiagnostics_operator.storage import Storage
from support.cluster.builders import connection, parsed
from support.cluster.plans import OUT, plan

if TYPE_CHECKING:
    from pathlib import Path

VOLUME = 1_000_000
LARGEST = 20_000
GREEDY, HONEST = Location.parse("volume:///greedy/run"), Location.parse("volume:///honest/run")


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, LARGEST)), min_size=100, max_size=300))
def test_there_is_always_room_for_another(captures: list[tuple[str, int]]) -> None:
    used = Counter[str]()
    for name, size in captures:
        free = VOLUME - used.total()
        if not is_used_up(used[name], free=free, total=VOLUME):
            used[name] += size
    free = VOLUME - used.total()
    assert free > VOLUME / 10 / 2 ** len(used) - LARGEST
    assert not is_used_up(0, free=free, total=VOLUME)


@given(st.integers(1, LARGEST))
def test_one_namespace_alone_may_use_nine_tenths(size: int) -> None:
    used = 0
    while not is_used_up(used, free=VOLUME - used, total=VOLUME):
        used += size
    assert VOLUME * 9 / 10 <= used < VOLUME * 9 / 10 + 2 * size


async def test_files_are_counted_where_the_volume_is_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage() -> Usage:
        used = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
        return Usage(VOLUME, used, VOLUME - used)

    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage())
    monkeypatch.setattr(volume_share, "COUNT_AGE_S", 0.0)
    storage = Storage(tmp_path)
    share = VolumeShare(storage)
    await share.check("greedy", [GREEDY, HONEST])
    await storage.directory(GREEDY).put("a", b"x" * (VOLUME * 9 // 10))
    await share.check("greedy", [GREEDY])
    await storage.directory(GREEDY).put("b", b"x" * LARGEST)
    with pytest.raises(StoreFull, match=r"namespace greedy: its files on the volume have 0\.0 GiB"):
        await share.check("greedy", [HONEST, GREEDY])
    await share.check("greedy", [Location.parse("gs://bucket/greedy")])
    await share.check("honest", [HONEST, GREEDY, Location.parse("volume:///")])
    await storage.directory(HONEST).put("a", b"x" * LARGEST)
    await share.check("honest", [HONEST])
    await storage.directory(GREEDY).delete("b")
    await storage.directory(GREEDY).delete("a")
    await share.check("greedy", [GREEDY])
    storage.close()


@pytest.mark.parametrize("root", [Location.parse("volume:///"), Location.parse("volume:///runs")], ids=str)
async def test_a_namespace_with_many_runs_has_one_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Location
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(VOLUME, VOLUME - 2 * LARGEST, 2 * LARGEST))
    storage = Storage(tmp_path)
    share = VolumeShare(storage)
    for number, namespace in enumerate(["greedy", "greedy", "greedy", "honest"]):
        run, capture = storage.directory(root.child(f"{number:064x}")), connection(namespace=namespace)
        await run.put(capture_record_key("a"), claim(parsed(capture), plan(), OUT, {}))
        await run.put(trace_key("a", "trainer-0"), b"x" * LARGEST)
    next_run = [root.child("f" * 64)]
    with pytest.raises(StoreFull, match="namespace greedy"):
        await share.check("greedy", next_run)
    await share.check("honest", next_run)
    storage.close()


async def test_a_directory_that_cannot_be_counted_hides_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(VOLUME, VOLUME - 10, 10))
    storage = Storage(tmp_path)
    tmp_path.joinpath("a", *["x"] * (MAX_DEPTH + 2)).mkdir(parents=True)
    await storage.directory(GREEDY).put("a", b"x" * LARGEST)
    with pytest.raises(StoreFull):
        await VolumeShare(storage).check("greedy", [GREEDY])
    assert "directories inside each other" in caplog.text
    storage.close()


async def test_a_count_that_takes_too_long_holds_no_capture_and_serves_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(VOLUME, VOLUME - 10, 10))
    storage = Storage(tmp_path)
    await storage.directory(GREEDY).put("a", b"x" * 100)
    share = VolumeShare(storage)
    with monkeypatch.context() as patch:
        patch.setattr(volume_share, "COUNT_TIMEOUT_S", 0.0)
        await share.check("greedy", [GREEDY])
    with pytest.raises(StoreFull):
        await share.check("greedy", [GREEDY])
    monkeypatch.setattr(volume_share, "COUNT_AGE_S", 0.0)
    monkeypatch.setattr(volume_share, "COUNT_TIMEOUT_S", 0.0)
    with pytest.raises(StoreFull):  # by the count before
        await share.check("greedy", [GREEDY])
    storage.close()


async def test_files_that_cannot_be_counted_fail_the_check_and_are_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(VOLUME, VOLUME - 10, 10))
    volume = tmp_path / "volume"
    volume.write_text("a file is not a directory")
    storage = Storage(volume)
    share = VolumeShare(storage)
    with pytest.raises(StoreError, match="directory"):
        await share.check("honest", [HONEST])
    volume.unlink()
    volume.mkdir()
    await share.check("honest", [HONEST])

    def stale(_: object) -> Usage:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(shutil, "disk_usage", stale)
    with pytest.raises(StoreError, match="the size of the volume cannot be read: Stale file handle"):
        await share.check("honest", [HONEST])
    storage.close()
