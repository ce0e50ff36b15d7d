"""Traces are stored beside those of an earlier incarnation."""

from __future__ import annotations

from pathlib import Path

import pytest
from mldiagnostics.errors import StoreNotFound
from mldiagnostics.profiling import storage
from mldiagnostics.store import open_store


def store_trace(directory: str, session: str, stem: str, trace: bytes) -> str:
    return storage.store_trace(open_store(directory), "", session, stem, trace)


def test_the_file_is_in_xprofs_directory(tmp_path: Path) -> None:
    where = store_trace(str(tmp_path / "run"), "a0-n1", "host", b"trace")
    assert where == str(tmp_path / "run/plugins/profile/a0-n1/host.xplane.pb")
    assert Path(where).read_bytes() == b"trace"


def test_hosts_that_restart_together_choose_the_same_next_session(tmp_path: Path) -> None:
    for number in range(3):
        places = [Path(store_trace(str(tmp_path), "a0-s10", host, b"%d" % number)) for host in ("h0", "h1")]
        assert {place.parent.name for place in places} == {"a0-s10" if number == 0 else f"a0-s10-{number + 1}"}
        assert {place.read_bytes() for place in places} == {b"%d" % number}


def test_xprofs_own_files_do_not_count_as_traces(tmp_path: Path) -> None:
    first = Path(store_trace(str(tmp_path), "s", "h0", b"0"))
    (first.parent / "h1.hlo_proto.pb").touch()
    assert Path(store_trace(str(tmp_path), "s", "h1", b"1")).parent == first.parent


def test_a_bucket_works_the_same(bucket_url: str) -> None:
    directory = f"{bucket_url}/r1"
    places = [store_trace(directory, "s", "host", data) for data in (b"first", b"second")]
    assert places == [f"{directory}/plugins/profile/{name}/host.xplane.pb" for name in ("s", "s-2")]
    with open_store(directory).open("plugins/profile/s-2/host.xplane.pb") as stored:
        assert stored.read() == b"second"


def test_an_unwritable_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreNotFound):
        store_trace(str(tmp_path / "file/run"), "s", "host", b"")
