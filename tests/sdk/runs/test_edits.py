"""Name, tags and notes that people gave runs, in files and in buckets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.errors import StoreForbidden
from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.runs import find_run, list_runs
from mldiagnostics.runs.edits import edit_run, read_edits
from mldiagnostics.store import open_store
from support.run_files import put_run
from support.servers.buckets import BUCKETS

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store

WORDS = RunDescription(name="baseline", tags=("a", "b c"), notes="first run\nwith the new data")


@pytest.fixture(params=["directory", *BUCKETS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A root of runs, in a directory and in a bucket of each scheme."""
    if request.param == "directory":
        return open_store(str(tmp_path / "runs"))
    return open_store(f"{request.param}://{request.getfixturevalue(BUCKETS[request.param])}/runs")


def test_an_edited_run_has_the_words_of_people_in_every_reading(store: Store) -> None:
    put_run(store, "abc", name="own", tags=["mine"], notes="of the program")
    put_run(store, "def", name="other", tags=["mine"])
    edit_run(store, "abc", lambda _: WORDS)
    put_run(store, "abc", name="own", tags=["mine"], notes="of the program", step=7)  # as a running program does
    for row in (find_run(store.url(), "abc"), *list_runs(store.url(), tag="b c")):
        assert (row.run_id, row.name, row.tags, row.notes) == ("abc", WORDS.name, WORDS.tags, WORDS.notes)
    assert [row.run_id for row in list_runs(store.url(), tag="mine")] == ["def"]
    assert [row.run_id for row in list_runs(store.url(), name="base*")] == ["abc"]
    assert len(list_runs(store.url())) == 2


def test_words_that_nobody_changed_are_those_of_the_program(store: Store) -> None:
    put_run(store, "abc", name="own", tags=["mine"], notes="of the program")
    edit_run(store, "abc", lambda before: replace(before, notes=""))
    row = find_run(store.url(), "abc")
    assert (row.name, row.tags, row.notes) == ("own", ("mine",), "")
    edit_run(store, "abc", lambda _: RunDescription())
    assert find_run(store.url(), "abc").notes == "of the program"
    assert [entry.key for entry in store.list()] == ["abc/run.json"]


def test_of_changes_at_the_same_time_none_is_lost(store: Store) -> None:
    def add(tag: str) -> None:
        edit_run(store, "abc", lambda before: replace(before, tags=(*(before.tags or ()), tag)))

    edit_run(store, "abc", lambda _: replace(WORDS, tags=(), notes="n" * 4096))
    with ThreadPoolExecutor(3) as people:
        list(people.map(add, ["x", "y", "z"]))
    assert sorted(read_edits(store, "abc").tags or ()) == ["x", "y", "z"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tags": 3, "name": [], "notes": {}}', b"[" * 10_000])
def test_a_broken_file_counts_as_no_change_and_can_be_changed(tmp_path: Path, content: bytes) -> None:
    store = open_store(str(tmp_path))
    put_run(store, "abc", name="own")
    store.put("edits/abc.json", content)
    assert find_run(store.url(), "abc").name == "own"
    edit_run(store, "abc", lambda _: WORDS)
    assert find_run(store.url(), "abc").name == "baseline"


def test_edits_that_cannot_be_read_hide_no_run(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    put_run(open_store(str(root)), "abc", name="own")
    elsewhere.mkdir()
    (root / "edits").symlink_to(elsewhere)
    assert [row.name for row in list_runs(str(root))] == ["own"]
    assert diagnostics.counts()["unreadable-edits"]


def test_a_root_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to("runs")
    with pytest.raises(StoreForbidden):
        list_runs(str(tmp_path / "runs"))
