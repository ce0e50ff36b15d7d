"""Spooled files are uploaded whole and once, and stored files are not changed."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.errors import StoreNotFound
from mldiagnostics.layout import trace_key
from mldiagnostics.spool.creation import create_directory
from mldiagnostics.spool.directory import SpoolDirectory, abandoned_directories
from mldiagnostics.spool.uploading import UploadStopped, upload_all
from mldiagnostics.store import open_store
from support.records import origin

if TYPE_CHECKING:
    from pathlib import Path

TRACE = "r/" + trace_key("s", "host")


@pytest.fixture(autouse=True)
def _spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


def waiting(files: dict[str, bytes], *, incarnation: str = "0123abcd") -> SpoolDirectory:
    directory = create_directory("gs://anywhere", origin(incarnation=incarnation))
    for key, content in files.items():
        path = directory.files / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory


def content(store: Path) -> dict[str, bytes]:
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def document(attempt: int, *, phase: str = "Completed", attempts: list[Any] | None = None) -> dict[str, Any]:
    return {
        "runId": "r", "attempt": attempt, "incarnation": f"i{attempt}", "phase": phase, "reason": "", "message": "",
        "created": 100.0 + attempt, "started": 100.0 + attempt, "ended": None, "heartbeat": {"t": 150.0 + attempt},
        "attempts": attempts or [],
    }  # fmt: skip


def test_all_files_are_uploaded_and_deleted_from_the_spool(bucket_url: str) -> None:
    files = {"r/records/a0-r0-x-00001.jsonl": b"line\n", "r/run.json": b'{"runId": "r"}', TRACE: b"trace"}
    directory, store = waiting(files), open_store(bucket_url)
    assert upload_all(directory, store).files == 3
    assert directory.keys() == []
    assert {entry.key for entry in store.list()} == set(files)


def test_a_repeated_upload_changes_nothing(tmp_path: Path) -> None:
    files = {"r/records/a": b"line\n", TRACE: b"trace", "r/run.json": json.dumps(document(0)).encode()}
    place = tmp_path / "store"
    upload_all(waiting(files), open_store(str(place)))
    before = content(place)
    upload_all(waiting(files, incarnation="00000002"), open_store(str(place)))
    assert content(place) == before


def test_different_stored_content_is_kept_and_other_files_are_uploaded(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    store.put("r/records/a", b"other\n")
    store.put(TRACE, b"other")
    directory, before = waiting({"r/records/a": b"ours\n", "r/records/b": b"b\n", TRACE: b"ours"}), diagnostics.counts()
    result = upload_all(directory, store)
    assert (result.files, result.conflicts, directory.keys()) == (2, ("r/records/a",), ["r/records/a"])
    assert content(tmp_path / "store") == {
        "r/records/a": b"other\n", "r/records/b": b"b\n", TRACE: b"other", "r/" + trace_key("s-2", "host"): b"ours",
    }  # fmt: skip
    assert diagnostics.counts()["spool-conflict"] == before.get("spool-conflict", 0) + 1


@pytest.mark.parametrize("late", ["spooled", "stored"])
def test_run_json_is_merged_in_both_orders_of_attempts(late: str, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    stored, spooled = (document(0), document(1)) if late == "spooled" else (document(1), document(0, phase="Active"))
    store.put("r/run.json", json.dumps(stored).encode())
    upload_all(waiting({"r/run.json": json.dumps(spooled).encode()}), store)
    result = json.loads(content(tmp_path / "store")["r/run.json"])
    assert (result["attempt"], result["created"]) == (1, 100.0)
    [past] = result["attempts"]
    assert (past["attempt"], past["phase"]) == (0, "Completed" if late == "spooled" else "Failed")


def test_files_stay_in_the_spool_while_the_store_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = waiting({"r/records/a": b"a\n", "r/records/b": b"b\n"})
    with pytest.raises(StoreNotFound):
        upload_all(directory, open_store(str(tmp_path / "file/store")))
    assert len(directory.keys()) == 2


def test_a_stopped_upload_leaves_the_current_file(tmp_path: Path) -> None:
    directory = waiting({TRACE: b"x" * 3_000_000})
    pieces = iter([False, True])
    with pytest.raises(UploadStopped):
        upload_all(directory, open_store(str(tmp_path / "store")), stopped=lambda: next(pieces))
    assert directory.keys() == [TRACE]
    assert content(tmp_path / "store") == {}


def test_concurrent_uploads_store_each_file_once(tmp_path: Path) -> None:
    for number in range(8):
        waiting({f"r/records/{number}": b"line\n"}, incarnation=f"{number:08}").release()
    store, uploaded, start = open_store(str(tmp_path / "store")), [], threading.Barrier(4)

    def work() -> None:
        start.wait()
        for directory in abandoned_directories("gs://anywhere"):
            uploaded.append(upload_all(directory, store).files)
            directory.remove_or_release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(uploaded) == 8
    assert content(tmp_path / "store") == {f"r/records/{number}": b"line\n" for number in range(8)}
