"""Which sessions `mldiag profiles prune` deletes; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import SessionRow


def expired(
    sessions: Sequence[SessionRow], *, keep: int | None, older_than_s: float | None, now: float
) -> list[SessionRow]:
    """Return the sessions of one run or directory to delete, the oldest first.

    A session is kept if it is among the newest `keep`, or if it is not older than `older_than_s` seconds. A session
    whose age is not known is kept, unless only their number counts.

    Args:
        sessions: All sessions.
        keep: How many of the newest are kept, however old; None for none.
        older_than_s: Sessions up to this age are kept, however many; None for none.
        now: As of when, in Unix seconds.
    """
    if keep is None and older_than_s is None:
        return []
    rows = sorted(sessions, key=lambda row: (row.t or 0.0, row.name))
    rows = rows[: max(0, len(rows) - (keep or 0))]
    if older_than_s is None:
        return rows
    return [row for row in rows if row.t is not None and now - row.t > older_than_s]
