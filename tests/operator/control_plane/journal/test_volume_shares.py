from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.reports.reported_run import RunKey
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.journal.volume_shares import JournalSize, VolumeShares
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from support.cluster.reports import apply, body_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROOT = Location.parse("volume:///runs")
VOLUME = 400_000
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
    shares.forget(key)
    assert (shares.admits("ml", 25), shares.admits("ml", 24)) == (True, False)


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
    storage.close()
