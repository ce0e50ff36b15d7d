"""The sessions that a bounded cache keeps, for any bucket and any size."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.store import Entry
from mldiagnostics_cli.xprof.stage_plan import (
    CachedSession,
    RemoteSession,
    directory_of,
    evictions,
    newest_that_fits,
    sessions_of,
)

NAMES = st.sampled_from("abcdef")
CACHED = st.builds(CachedSession, NAMES, st.integers(0, 50), st.floats(0, 9))


def remote(name: str, size: int, modified: float = 0.0) -> RemoteSession:
    return RemoteSession(name, {f"{name}.xplane.pb": size}, modified)


def entry(key: str, second: int = 0) -> Entry:
    return Entry(key, 3, datetime.fromtimestamp(second, UTC))


@given(st.integers(0, 60), st.lists(CACHED, unique_by=lambda each: each.name), st.integers(1, 99))
def test_the_cache_never_exceeds_its_limit_and_loses_no_more_than_needed(
    size: int, cached: list[CachedSession], limit: int
) -> None:
    wanted = remote("a", size)
    if size > limit:
        with pytest.raises(ValueError, match="make another server with --cache-size"):
            evictions(wanted, cached, limit)
        return
    evicted = evictions(wanted, cached, limit)
    others = {each.name: each for each in cached if each.name != "a"}
    kept = [each for name, each in others.items() if name not in evicted]
    assert size + sum(each.bytes for each in kept) <= limit
    assert all(others[name].used <= each.used for name in evicted for each in kept)
    if evicted:
        assert size + sum(each.bytes for each in kept) + others[evicted[-1]].bytes > limit


def test_the_newest_session_that_fits_is_the_first() -> None:
    sessions = [remote("old", 5, 1), remote("huge", 50, 3), remote("new", 10, 2)]
    assert newest_that_fits(sessions, 10) == sessions[2]
    assert newest_that_fits(sessions, 1) is None


def test_only_traces_with_names_of_files_are_sessions() -> None:
    entries = [
        entry("plugins/profile/one/host-0.xplane.pb", 4),
        entry("plugins/profile/one/host-1.xplane.pb", 7),
        entry("plugins/profile/one/host-0.trace_events.db"),
        entry("plugins/profile/one/capture.json"),
        entry("plugins/profile/../host-0.xplane.pb"),
        entry("plugins/profile//host-0.xplane.pb"),
        entry(f"plugins/profile/{300 * 'a'}/host-0.xplane.pb"),
    ]
    [session] = sessions_of("ml/trainer", entries)
    assert (session.name, session.bytes, session.modified) == ("ml/trainer/one", 6, 7)
    assert [each.name for each in sessions_of("", entries)] == ["one"]
    assert directory_of(session.name) == "ml/trainer/plugins/profile/one"
