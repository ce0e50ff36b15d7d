"""The sessions that XProf shows of a bucket."""

from __future__ import annotations

from datetime import UTC, datetime

from mldiagnostics.runs.session_cache import StoredSession
from mldiagnostics.store import Entry, open_store
from mldiagnostics_cli.xprof.stage_plan import directory_of, newest_that_fits, sessions_of

STORE = open_store("/nowhere")


def stored(name: str, size: int, modified: float) -> StoredSession:
    return StoredSession(name, {f"{name}.xplane.pb": size}, modified, STORE)


def entry(key: str, second: int = 0) -> Entry:
    return Entry(key, 3, datetime.fromtimestamp(second, UTC))


def test_the_newest_session_that_fits_is_the_first() -> None:
    sessions = [stored("old", 5, 1), stored("huge", 50, 3), stored("new", 10, 2)]
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
    [session] = sessions_of("ml/trainer", entries, STORE)
    assert (session.name, session.bytes, session.modified) == ("ml/trainer/one", 6, 7)
    assert [each.name for each in sessions_of("", entries, STORE)] == ["one"]
    assert directory_of(session.name) == "ml/trainer/plugins/profile/one"
