"""Decide which finished captures have expired, and when to check again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

LONGEST_WAIT = timedelta(minutes=5)
SHORTEST_WAIT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished object; without `ttl_s` it stays for ever."""

    namespace: str
    name: str
    uid: str
    finished: datetime | None
    ttl_s: int | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The objects to delete now, and the wait before the next sweep."""

    expired: tuple[Finished, ...]
    wait: timedelta


def sweep(objects: Iterable[Finished], *, now: datetime) -> Sweep:
    """Return the expired objects and the wait before the next sweep.

    The next sweep is due when the first of the other objects expires, within fixed bounds: objects that finish
    meanwhile are not in this list.
    """
    expired: list[Finished] = []
    wait = LONGEST_WAIT
    for item in objects:
        if item.finished is None or item.ttl_s is None:
            continue
        left = item.finished + timedelta(seconds=item.ttl_s) - now
        if left <= timedelta(0):
            expired.append(item)
        else:
            wait = min(wait, left)
    return Sweep(tuple(expired), max(wait, SHORTEST_WAIT))
