from __future__ import annotations

import asyncio
import shutil
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import StoreUnreachable
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.journal.stored_journals import stored_journals
from mldiagnostics_operator.control_plane.journal.volume_shares import JournalSize, VolumeShares
from mldiagnostics_operator.control_plane.memory.journal_page import write_state
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import LogDirectory, Storage
from support.cluster.reports import apply, body_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = Location.parse("volume:///runs")
VOLUME = 400_000
DEADLINE_S = 60
EVENTS = [Event(1_790_000_000_000_000 + 7919 * at * at, EventCode.STEP_START, at) for at in range(4000)]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(1, 50)), max_size=200))
def test_no_namespace_fills_the_volume_and_each_other_one_has_room(writes: list[tuple[str, int, int]]) -> None:
    shares, used, total = VolumeShares(), dict.fromkeys("abcd", 0), 1000
    for namespace, run, size in writes:
        if shares.admits(namespace, total - sum(used.values())):
            shares.written(RunKey(namespace, f"{run}"), JournalSize(events=size))
            used[namespace] += size
    assert all(each <= total / 2 + 50 for each in used.values())
    assert shares.admits("d", total - sum(used.values()))


def test_a_state_that_is_replaced_counts_once_and_files_stay() -> None:
    shares, key = VolumeShares(), RunKey("ml", "run")
    for size in (10, 30, 20):
        shares.written(key, JournalSize(state=size, events=1))
    assert (shares.admits("ml", 23), shares.admits("ml", 22)) == (True, False)
    shares.restored(key, JournalSize(20, 5))
    for _ in range(2):
        shares.forget(key)
        assert (shares.admits("ml", 25), shares.admits("ml", 24)) == (True, False)
        shares.restored(key, JournalSize(20, 5))
        assert (shares.admits("ml", 25), shares.admits("ml", 24)) == (True, False)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.booleans()), max_size=50), st.data())
def test_a_count_at_any_moment_changes_no_share(writes: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    shares, disk = VolumeShares(), dict[RunKey, int]()
    for run, size, forget in writes:
        key = RunKey("ml", f"{run}")
        if key in disk:  # the memory reads a journal before it writes it
            shares.restored(key, JournalSize(events=disk[key]))
        shares.written(key, JournalSize(events=size))
        disk[key] = disk.get(key, 0) + size
        if forget:
            shares.forget(key)
        if data.draw(st.booleans()):
            shares.counted(disk)
        used = sum(disk.values())
        assert (shares.admits("ml", used), shares.admits("ml", used - 1)) == (True, False)


async def test_a_namespace_that_fills_the_volume_stops_only_its_own_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def usage() -> Usage:
        used = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
        return Usage(VOLUME, used, VOLUME - used)

    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage())
    limited = list[str]()
    table, storage = ReportTable(), Storage(tmp_path)
    journal = Journal(table, storage, ROOT, limited=limited.append)

    async def report(key: RunKey, events: int) -> int:
        document: dict[str, Any] = {"v": 1, "incarnation": "00000001", "sequence": 1, "sent": 1.0}
        document |= {"run": {"name": "r"}, "events": {"items": packing.pack(EVENTS[:events])}}
        apply(table, key, body_of(document), Sender(key.namespace, "default", "pod", "uid"), 1.0)
        await journal.close()
        return table.answer(key, "00000001").persisted_sequence

    acknowledged = [await report(RunKey("greedy", f"run-{number}"), len(EVENTS)) for number in range(20)]
    assert acknowledged == sorted(acknowledged, reverse=True)
    assert (acknowledged[0], acknowledged[-1]) == (1, 0)
    assert usage().free > VOLUME / 3
    assert await report(RunKey("honest", "run"), 10) == 1
    assert set(limited) == {"greedy"}
    assert caplog.text.count("Namespace greedy") == 1
    assert table.view(RunKey("greedy", "run-19")) is not None  # its object shows it

    table = ReportTable()  # of the next leader
    journal = Journal(table, storage, ROOT)
    counting = asyncio.create_task(journal.keep_counting())
    async with asyncio.timeout(DEADLINE_S):
        while await report(RunKey("greedy", f"again-{time.monotonic_ns()}"), 1):
            pass
    assert await report(RunKey("honest", "another-run"), 10) == 1
    counting.cancel()
    storage.close()


async def test_journals_of_accounts_and_of_workloads_are_counted_and_other_files_are_not(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    root, state = storage.directory(ROOT), b'{"v":1,"mark":"m","namespace":"%b","runId":"%b"}'
    expected = {}
    for place, key in (("a", RunKey("ml", "a")), ("other/b", RunKey("other", "b"))):
        content = state % (key.namespace.encode(), key.run_id.encode())
        await root.put(f"{place}/reported/state.json", content)
        await root.put(f"{place}/reported/records/a0-r0-00000001-00001.jsonl", b"x" * 100)
        expected[key] = len(content) + 100
    for place in ("a-file", "ml/trainer/plugins/profile/s/trainer-0.xplane.pb", "broken/reported/state.json"):
        await root.put(place, b"x" * 10_000)
    await root.put("folder/reported/state.json/none", b"x")
    assert await stored_journals(root) == expected
    storage.close()


async def test_a_journal_that_cannot_be_read_hides_no_other_one(tmp_path: Path) -> None:
    write_state_of(tmp_path / "runs" / "first", RunKey("ml", "first"))
    write_state_of(tmp_path / "runs" / "outside" / "inner", RunKey("outside", "inner"))
    for folder in ("bad", "outside"):
        (tmp_path / "runs" / folder / "reported").mkdir(parents=True)
        (tmp_path / "runs" / folder / "reported" / "state.json").symlink_to("x")
    storage = Storage(tmp_path)
    assert set(await stored_journals(storage.directory(ROOT))) == {RunKey("ml", "first"), RunKey("outside", "inner")}
    storage.close()


async def test_a_volume_that_does_not_respond_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state_of(tmp_path / "runs" / "first", RunKey("ml", "first"))

    async def unreachable(_directory: LogDirectory, _key: str) -> bytes:
        raise StoreUnreachable("no response")

    monkeypatch.setattr(LogDirectory, "read", unreachable)
    storage = Storage(tmp_path)
    with pytest.raises(StoreUnreachable):
        await stored_journals(storage.directory(ROOT))
    storage.close()


def write_state_of(folder: Path, key: RunKey) -> None:
    """Write a state without processes."""
    (folder / "reported").mkdir(parents=True)
    (folder / "reported" / "state.json").write_bytes(write_state(key, "mark", {}, []))
