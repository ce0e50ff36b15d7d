"""Decide which finished captures have outlived their time to live, and when to look again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

LOOK_AGAIN_AT_MOST = timedelta(minutes=5)
LOOK_AGAIN_AT_LEAST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished object, reduced to what its removal depends on; `ttl_s` None means that it stays for ever."""

    namespace: str
    name: str
    uid: str
    finished: datetime | None
    ttl_s: int | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The objects to delete now, and how long to wait before the next look."""

    expired: tuple[Finished, ...]
    wait: timedelta


def sweep(objects: Iterable[Finished], *, now: datetime) -> Sweep:
    """Part the objects into those whose time is over and those that wait.

    The next look is due when the first of the waiting ones expires, within fixed bounds: objects that finish
    meanwhile are not in this list.
    """
    expired: list[Finished] = []
    wait = LOOK_AGAIN_AT_MOST
    for item in objects:
        if item.finished is None or item.ttl_s is None:
            continue
        left = item.finished + timedelta(seconds=item.ttl_s) - now
        if left <= timedelta(0):
            expired.append(item)
        else:
            wait = min(wait, left)
    return Sweep(tuple(expired), max(wait, LOOK_AGAIN_AT_LEAST))
