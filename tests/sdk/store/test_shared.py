"""A directory that other tenants write: a server reads only files that are really there."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import LogMissing, LogUnreadable, NotStored, StoreError, StoreForbidden
from mldiagnostics.goodput.log import open_log
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.store import open_store
from mldiagnostics.store.shared import shared_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDS = "records/a0-r0-00000000-00001.jsonl"
LINE = '{"v":1,"kind":"event","t":1.0,"name":"goodput","payload":{"job_name":"j","job_start_time":1.0}}\n'
PLACES = {
    "the run": ("own/run", "../other/run"),
    "its records": ("own/run/records", "../../other/run/records"),
    "a file of records": (f"own/run/{RECORDS}", f"../../../other/run/{RECORDS}"),
}


@pytest.fixture(params=PLACES)
def volume(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A volume with the run of another tenant, to which a part of the own run is a link."""
    other = tmp_path / "other/run" / RECORDS
    other.parent.mkdir(parents=True)
    other.write_text(LINE)
    (tmp_path / "other/run/run.json").write_text("{}")
    link, target = PLACES[request.param]
    (tmp_path / link).parent.mkdir(parents=True)
    (tmp_path / link).symlink_to(target)
    return tmp_path


def records_of(run: str) -> list[object]:
    files, content = record_files(run), list[object]()
    for _, opened in files.open(files.list()):
        with opened:
            content.append(opened.read())
    return content


def content_of(run: str, key: str) -> list[object]:
    with open_store(run).open(key) as file:
        return [file.read()]


READERS: dict[str, Callable[[str], list[object]]] = {
    "records": records_of,
    "goodput": lambda run: list(open_log(run).payloads(datetime.now(timezone.utc))),
    "run.json": lambda run: content_of(run, "run.json"),
    "segment": lambda run: content_of(run, RECORDS),
    "list": lambda run: [*open_store(run).list("records")],
}


def readable(run: Path) -> set[str]:
    """Return what a server finds in a run."""
    names = set()
    for name, read in READERS.items():
        with suppress(StoreError, LogMissing, LogUnreadable):
            names |= {name} if read(str(run)) else set()
    return names


def test_no_reader_of_a_run_follows_a_link_of_a_tenant(volume: Path) -> None:
    with shared_directory(volume):
        assert readable(volume / "own/run") == set()
        assert readable(volume / "other/run") == set(READERS)


def test_a_run_of_an_own_disk_may_be_a_link(volume: Path) -> None:
    if (volume / "own/run").is_symlink():
        assert readable(volume / "own/run") == set(READERS)


@pytest.mark.parametrize("shared", [True, False])
def test_a_store_below_a_shared_directory_works_as_any_other(tmp_path: Path, *, shared: bool) -> None:
    with shared_directory(tmp_path) if shared else nullcontext():
        store = open_store(str(tmp_path / "ml/run"))
        assert list(store.list()) == []
        assert store.put("d/k", b"x").url == str(tmp_path / "ml/run/d/k")
        store.put("d/k", b"y", replace=True)
        with store.open("d/k") as file:
            assert file.read() == b"y"
        assert [entry.key for entry in store.list()] == ["d/k"]
        assert list(store.folders()) == ["d"]
        store.put("e/k", b"x")
        assert store.delete_all("e") == 1
        assert store.delete("d/k")
        assert list((tmp_path / "ml/run").iterdir()) == []
        with pytest.raises(NotStored):
            store.open("d/k")


@pytest.mark.parametrize("folder", [".team", "..team", ".../.team"])
def test_a_hidden_folder_is_another_one_than_its_namesake(tmp_path: Path, folder: str) -> None:
    open_store(str(tmp_path / folder / "run")).put("k", b"hidden")
    open_store(str(tmp_path / folder.lstrip("./") / "run")).put("k", b"visible")
    with shared_directory(tmp_path), open_store(str(tmp_path / folder / "run")).open("k") as file:
        assert file.read() == b"hidden"


def test_a_run_that_is_a_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("/etc")
    with shared_directory(tmp_path), pytest.raises(StoreForbidden, match="is a symbolic link"):
        open_store(str(tmp_path / "run")).open("passwd")
