"""Copies of sessions in a directory of bounded size, from any store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs.session_cache import (
    CachedSession,
    SessionCache,
    SessionTooLarge,
    evictions,
    stored_session,
)
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.store import Store

DIRECTORIES = st.sampled_from("abcdef").map(Path)
CACHED = st.builds(CachedSession, DIRECTORIES, st.integers(0, 50), st.floats(0, 9))
REMEDY = "ask for a larger cache"


@given(st.integers(0, 60), st.lists(CACHED, unique_by=lambda each: each.directory), st.integers(1, 99))
def test_the_limit_is_kept_and_no_more_is_evicted_than_needed(
    size: int, others: list[CachedSession], limit: int
) -> None:
    size = min(size, limit)
    evicted = evictions(size, others, limit)
    by_directory = {each.directory: each for each in others}
    kept = [each for directory, each in by_directory.items() if directory not in evicted]
    assert size + sum(each.bytes for each in kept) <= limit
    assert all(by_directory[directory].used <= each.used for directory in evicted for each in kept)
    if evicted:
        assert size + sum(each.bytes for each in kept) + by_directory[evicted[-1]].bytes > limit


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(str(tmp_path / "run"))
    for session in ("first", "second"):
        store.put(f"plugins/profile/{session}/host-0.xplane.pb", session.encode())
        store.put(f"plugins/profile/{session}/capture.json", b"{}")
    return store


@pytest.fixture
def cache(tmp_path: Path) -> SessionCache:
    return SessionCache(tmp_path / "partial", 10, remedy=REMEDY)


def copy(cache: SessionCache, store: Store, session: str, directory: Path) -> list[Path]:
    stored = stored_session(store, session)
    assert stored is not None
    return cache.ensure(stored, directory)


def test_a_session_is_its_traces_and_has_a_host_that_came_later(
    cache: SessionCache, store: Store, tmp_path: Path
) -> None:
    directory = tmp_path / "copies/first"
    assert copy(cache, store, "first", directory) == []
    assert [path.name for path in directory.iterdir()] == ["host-0.xplane.pb"]
    (directory / "cache.db").touch()
    copy(cache, store, "first", directory)
    assert (directory / "cache.db").exists(), "files of XProf stay while the session is the same"
    store.put("plugins/profile/first/host-1.xplane.pb", b"late")
    copy(cache, store, "first", directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == {
        "host-0.xplane.pb": b"first",
        "host-1.xplane.pb": b"late",
    }
    assert stored_session(store, "absent") is None


def test_files_beside_the_traces_count_and_the_one_used_longest_ago_makes_room(
    cache: SessionCache, store: Store, tmp_path: Path
) -> None:
    first, second = tmp_path / "copies/first", tmp_path / "copies/second"
    copy(cache, store, "first", first)
    (first / "cache.db").write_bytes(b"xxxx")
    assert copy(cache, store, "second", second) == [first]
    assert not first.exists()
    assert copy(cache, store, "first", first) == [second]


def test_a_session_that_never_fits_is_refused_and_the_others_stay(
    cache: SessionCache, store: Store, tmp_path: Path
) -> None:
    copy(cache, store, "first", tmp_path / "first")
    store.put("plugins/profile/large/host-0.xplane.pb", bytes(11))
    with pytest.raises(SessionTooLarge, match=f"session large: has 11 bytes, the cache 10; {REMEDY}"):
        copy(cache, store, "large", tmp_path / "large")
    assert (tmp_path / "first").is_dir()


def test_many_at_once_share_one_copy(cache: SessionCache, store: Store, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        copies = [pool.submit(copy, cache, store, "first", tmp_path / "first") for _ in range(32)]
    assert [each.result() for each in copies] == [[]] * 32
    assert (tmp_path / "first/host-0.xplane.pb").read_bytes() == b"first"
