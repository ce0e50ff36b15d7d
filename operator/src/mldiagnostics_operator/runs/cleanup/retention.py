"""Decide which ended runs have expired, by age and by number; pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class EndedRun:
    """An ended run."""

    namespace: str
    name: str
    uid: str
    ended: datetime
    ttl_s: int | None
    """Its own time to live; None without one."""


def expired_runs(runs: Iterable[EndedRun], *, now: datetime, ttl_s: int | None, keep: int) -> list[EndedRun]:
    """Return the runs to delete now.

    Args:
        runs: Ended runs of any namespaces.
        now: Current time.
        ttl_s: Time to live of runs without their own; None keeps them.
        keep: Runs without their own time to live that each namespace keeps, the newest ones.
    """
    expired: list[EndedRun] = []
    counted: dict[str, list[EndedRun]] = defaultdict(list)
    for run in runs:
        lives_s = ttl_s if run.ttl_s is None else run.ttl_s
        if lives_s is not None and now - run.ended >= timedelta(seconds=lives_s):
            expired.append(run)
        elif run.ttl_s is None:
            counted[run.namespace].append(run)
    for of_namespace in counted.values():
        newest_first = sorted(of_namespace, key=lambda run: (run.ended, run.uid), reverse=True)
        expired += newest_first[keep:]
    return expired
