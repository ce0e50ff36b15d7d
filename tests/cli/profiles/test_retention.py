"""Which sessions are deleted by number and age."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs import SessionRow
from mldiagnostics_cli.profiles.retention import expired

NOW = 1_000_000.0


def session(name: str, t: float | None) -> SessionRow:
    return SessionRow(name, "profile", (), 0, t, None, None, None, None, f"/logs/{name}")


SESSIONS = st.lists(st.none() | st.floats(0, NOW), max_size=12).map(
    lambda times: [session(f"s{number}", t) for number, t in enumerate(times)]
)
LIMITS = st.tuples(st.none() | st.integers(0, 15), st.none() | st.floats(1, NOW))


@given(sessions=SESSIONS, limits=LIMITS)
def test_the_newest_and_the_young_are_kept(sessions: list[SessionRow], limits: tuple[int | None, float | None]) -> None:
    keep, age = limits
    deleted = expired(sessions, keep=keep, older_than_s=age, now=NOW)
    kept = [row for row in sessions if row not in deleted]
    assert len(deleted) + len(kept) == len(sessions)
    assert keep is None or len(kept) >= min(keep, len(sessions))
    assert all((row.t or 0.0) <= (other.t or 0.0) for row in deleted for other in kept if other.t) or age is not None
    if age is not None:
        assert all(row.t is not None and NOW - row.t > age for row in deleted)
    if limits == (None, None):
        assert deleted == []
    again = expired(kept, keep=keep, older_than_s=age, now=NOW)
    assert again == []
