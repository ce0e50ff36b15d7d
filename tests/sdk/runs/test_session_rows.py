"""Profile sessions: listed with hosts and sizes, captures with their object and targets."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics, layout
from mldiagnostics.errors import StoreForbidden
from mldiagnostics.runs import list_runs, run_at, sessions
from mldiagnostics.runs.session_rows import SessionRow, with_stored
from mldiagnostics.store import open_store
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store


@pytest.fixture(params=["local", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "runs")
    return f"gs://{request.getfixturevalue('gcs_bucket')}/some/runs"


@pytest.fixture
def store(storage: str) -> Store:
    store = open_store(storage, timeout_s=30)
    store.put("r/run.json", json.dumps({"runId": "r", "phase": "Active"}).encode())
    return store


CAPTURE = {
    "v": 1,
    "object": {"kind": "MLDiagnosticsConnection", "namespace": "ml", "name": "cap"},
    "skewMilliseconds": 1.5,
    "targets": [{"state": "Captured"}, {"state": "Captured"}, {"state": "Failed"}, {"state": 7}, "x"],
}


def test_sessions_have_hosts_sizes_and_their_origin(storage: str, store: Store) -> None:
    store.put(f"r/{layout.trace_key('a2-s100', 'host-1')}", b"12345")
    store.put(f"r/{layout.trace_key('a2-s100', 'host-0')}", b"123")
    store.put("r/plugins/profile/a2-s100/host-0.op_stats_v2.pb", b"a cache of XProf")
    store.put(f"r/{layout.trace_key('a0-n3-2', 'host-0')}", b"1")
    store.put(f"r/{layout.trace_key('by-hand', 'host-0')}", b"1")
    store.put(f"r/{layout.trace_key('cap-1234', 'trainer-0')}", b"12")
    store.put(f"r/{layout.capture_record_key('cap-1234')}", json.dumps(CAPTURE).encode())
    store.put(f"r/{layout.capture_record_key('broken')}", b"{")
    rows = {row.name: row for row in sessions(f"{storage}/r")}
    stepped, called, named, capture, broken = (
        rows[name] for name in ("a2-s100", "a0-n3-2", "by-hand", "cap-1234", "broken")
    )
    assert (stepped.kind, stepped.attempt, stepped.step, stepped.bytes) == ("profile", 2, 100, 8)
    assert [(file.host, file.bytes, file.url) for file in stepped.files] == [
        ("host-0", 3, store.url(f"r/{layout.trace_key('a2-s100', 'host-0')}")),
        ("host-1", 5, store.url(f"r/{layout.trace_key('a2-s100', 'host-1')}")),
    ]  # fmt: skip
    assert stepped.t is not None
    assert (called.attempt, called.step) == (0, None)
    assert (named.kind, named.attempt, named.step, named.object, named.targets) == ("profile", None, None, None, None)
    assert (capture.kind, capture.object, capture.hosts) == ("capture", "ml/cap", ("trainer-0",))
    assert (capture.targets, capture.skew_ms) == ({"Captured": 2, "Failed": 1}, 1.5)
    assert (broken.kind, broken.object, broken.targets, broken.t) == ("capture", None, {}, None)
    assert diagnostics.counts()["unreadable-capture"]
    assert json.dumps([row.to_json() for row in rows.values()])
    [row] = list_runs(storage)
    assert row.sessions == ("a0-n3-2", "a2-s100", "broken", "by-hand", "cap-1234")
    assert sessions(row) == sessions(f"{storage}/r")


def test_a_run_without_profiles_has_none(storage: str, store: Store) -> None:
    assert store
    assert sessions(f"{storage}/r") == []
    row = run_at(f"{storage}/r")
    assert row is not None
    assert row.sessions == ()


def test_files_whose_names_no_store_accepts_are_left_out(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put(layout.trace_key("own", "host-0"), b"1")
    for name in ("a\nb", os.fsdecode(b"\xff\xfe"), ".mldiag-0123456789abcdef.partial"):
        folder = tmp_path / "plugins/profile" / name
        folder.mkdir()
        (folder / "host-0.xplane.pb").write_bytes(b"1")
    assert [session.name for session in sessions(str(tmp_path))] == ["own"]


@pytest.mark.parametrize("link", ["plugins", "plugins/profile"])
def test_sessions_that_cannot_be_listed_are_left_out_with_a_warning(tmp_path: Path, link: str) -> None:
    put_run(open_store(str(tmp_path)), "r")
    path = tmp_path / "r" / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path)
    assert sessions(str(tmp_path / "r")) == []
    assert diagnostics.counts()["unreadable-sessions"]


def test_the_sessions_of_a_directory_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "r").symlink_to("r")
    with pytest.raises(StoreForbidden):
        sessions(str(tmp_path / "r"))


def row(url: str, *, t: float, size: int = 0) -> SessionRow:
    return SessionRow(name=url.rpartition("/")[2], kind="capture", url=url, t=t, bytes=size)


def test_a_session_with_files_replaces_the_one_that_the_mlrun_names_there() -> None:
    known = [row("gs://b/r/plugins/profile/first", t=1.0), row("gs://b/r/plugins/profile/gone", t=3.0)]
    stored = [row("/copy/r/plugins/profile/first", t=1.0, size=9), row("/copy/r/plugins/profile/own", t=2.0)]
    joined = with_stored(known, stored, directory="gs://b/r")
    assert [(each.name, each.bytes) for each in joined] == [("first", 9), ("own", 0), ("gone", 0)]


def test_a_session_of_the_same_name_elsewhere_is_another_one() -> None:
    known, stored = [row("gs://other/plugins/profile/one", t=2.0)], [row("gs://b/r/plugins/profile/one", t=1.0)]
    assert with_stored(known, stored, directory="gs://b/r") == [*stored, *known]
