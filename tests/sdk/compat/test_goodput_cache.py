"""The cache of ml-goodput-measurement: shared files, and torn lines are skipped."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.goodput_cache import GoodputCache
from mldiagnostics.goodput_utils import GoodputInfo, StepInfo

if TYPE_CHECKING:
    from pathlib import Path

AT = datetime(2026, 3, 1, tzinfo=timezone.utc)
ENTRIES = [
    {"job_name": "j", "job_start_time": AT.timestamp()},
    {"job_name": "j", "step_count": 0, "step_start_time": AT.timestamp() + 5},
    {"job_name": "j", "job_end_time": AT.timestamp() + 9},
    {"job_name": "j", "job_end_time": AT.timestamp() + 19},
]


def test_added_entries_are_available_to_the_next_process(tmp_path: Path) -> None:
    first = GoodputCache("job", str(tmp_path))
    assert first.is_cache_empty()
    assert (first.get_last_entry_info(), first.get_job_start_time(), first.get_cached_entries()) == (None, None, [])
    first.update_cached_entries(ENTRIES[:2], (AT, "a"))
    first.update_cached_entries(ENTRIES[2:], (AT, "b"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job_metadata.json", "job_timeline.jsonl"]
    second = GoodputCache("job", str(tmp_path))
    assert second.get_cached_entries() == ENTRIES
    assert second.get_step_entries() == ENTRIES[1:2]
    assert second.get_last_entry_info() == (AT, "b")
    assert second.get_job_start_time() == AT
    assert second.get_job_end_time() == datetime.fromtimestamp(AT.timestamp() + 19, timezone.utc)
    assert not second.is_cache_empty()
    second.clear_cache()
    assert first.is_cache_empty()
    assert first.get_cached_entries() == []


def test_results_are_remembered_by_the_process() -> None:
    cache = GoodputCache("job")
    assert (cache.get_goodput_info(), cache.get_step_info()) == (None, None)
    info, steps = GoodputInfo(total_productive_time=3.0), StepInfo(2.0, {1: 0.5})
    cache.update_goodput_info(info)
    cache.update_step_info(steps)
    assert cache.get_goodput_info() is info
    assert cache.get_step_info() is steps


def test_a_torn_line_is_skipped(tmp_path: Path) -> None:
    cache = GoodputCache("job", str(tmp_path))
    (tmp_path / "job_timeline.jsonl").write_bytes(json.dumps(ENTRIES[0]).encode() + b'\n{"job_name": "j", "step_c\xff')
    (tmp_path / "job_metadata.json").write_text('{"last_entry_timestamp": ')
    cache.update_cached_entries(ENTRIES[1:], (None, None))
    assert cache.get_cached_entries() == ENTRIES
    assert cache.get_last_entry_info() is None


def test_invalid_entries_are_skipped(tmp_path: Path) -> None:
    moments = [True, 1e300, -5.0, "soon", None]
    lines = [json.dumps({"job_name": "j", "job_start_time": t, "job_end_time": t}) for t in moments]
    (tmp_path / "j_timeline.jsonl").write_text("\n".join([*lines, "[" * 100_000, json.dumps(ENTRIES[0])]))
    cache = GoodputCache("j", str(tmp_path))
    assert len(cache.get_cached_entries()) == len(moments) + 1
    assert (cache.get_job_start_time(), cache.get_job_end_time()) == (AT, None)


def test_a_jobs_name_may_be_a_path(tmp_path: Path) -> None:
    cache = GoodputCache("team/../job", str(tmp_path / "new"))
    cache.update_cached_entries(ENTRIES, (AT, "a"))
    assert GoodputCache("team/../job", str(tmp_path / "new")).get_cached_entries() == ENTRIES
    assert GoodputCache("job", str(tmp_path / "new")).is_cache_empty()


WRITER = """
import sys
from mldiagnostics.goodput_cache import GoodputCache
cache = GoodputCache("job", sys.argv[1])
for n in range(50):
    cache.update_cached_entries([{"writer": sys.argv[2], "n": n, "filler": "x" * 5000}], (None, None))
"""


def test_many_processes_may_add_at_once(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(name)]) for name in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    entries = GoodputCache("job", str(tmp_path)).get_cached_entries()
    for name in "012":
        assert [entry["n"] for entry in entries if entry["writer"] == name] == list(range(50))


def test_copies_are_where_the_peer_has_them_and_the_newest_counts(tmp_path: Path) -> None:
    bucket, here, there = tmp_path / "bucket", tmp_path / "here", tmp_path / "there"
    bucket.mkdir()
    cache = GoodputCache("job", str(here), gcs_path=str(bucket))
    cache.update_cached_entries(ENTRIES, (AT, "a"))
    cache.sync_to_gcs()
    assert sorted(path.name for path in (bucket / "goodput_cache").iterdir()) == [
        "job_metadata.json",
        "job_timeline.jsonl",
    ]
    assert GoodputCache("job", str(there), gcs_path=str(bucket)).get_cached_entries() == ENTRIES
    cache.update_cached_entries(ENTRIES[:1], (AT, "b"))
    assert len(GoodputCache("job", str(here), gcs_path=str(bucket)).get_cached_entries()) == 5


def test_a_missing_location_of_copies_is_only_logged(tmp_path: Path) -> None:
    cache = GoodputCache("job", str(tmp_path), gcs_path=str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    cache.update_cached_entries(ENTRIES, (AT, "a"))
    cache.sync_to_gcs()
    assert cache.get_cached_entries() == ENTRIES


@pytest.mark.parametrize("when", [AT, AT.timestamp()], ids=["datetime", "seconds"])
def test_the_time_of_a_cursor_is_validated(tmp_path: Path, when: Any) -> None:
    cache = GoodputCache("job", str(tmp_path))
    cache.update_cached_entries(ENTRIES, (when, "id"))
    assert cache.get_last_entry_info() == (AT, "id")


@pytest.mark.parametrize("info", ["id", ("id", 3), (-1, "id"), (10**20, "id"), 7.5j, (1, 2, 3)], ids=str)
def test_an_invalid_cursor_is_ignored(tmp_path: Path, info: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mldiagnostics")
    cache = GoodputCache("job", str(tmp_path))
    cache.update_cached_entries(ENTRIES, info)
    assert (cache.get_cached_entries(), cache.get_last_entry_info()) == (ENTRIES, None)
    assert "has no valid time and is ignored; pass (datetime, id)" in caplog.text


def test_the_cursor_of_the_issue_is_remembered(tmp_path: Path) -> None:
    cache = GoodputCache("job", str(tmp_path))
    cache.update_cached_entries([], (3, "id"))  # type: ignore[arg-type]
    assert cache.get_last_entry_info() == (datetime.fromtimestamp(3, timezone.utc), "id")


def test_an_entry_that_json_cannot_say_loses_only_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mldiagnostics")
    cache = GoodputCache("job", str(tmp_path))
    cache.update_cached_entries([ENTRIES[0], {"n": 10**5000}, {(1, 2): 3}, ENTRIES[1]], (None, None))  # type: ignore[dict-item]
    assert cache.get_cached_entries() == ENTRIES[:2]
    assert "left out of the cache" in caplog.text
