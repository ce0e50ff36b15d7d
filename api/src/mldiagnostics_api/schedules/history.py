"""Which captures of a schedule leave its history."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCapture:
    """A finished capture that a schedule made."""

    name: str
    uid: str
    ended: float
    has_findings: bool = False
    """Whether its diagnosis found a cause."""


def leaving(captures: Iterable[PastCapture], *, keep: int, keep_with_findings: int) -> list[PastCapture]:
    """Return the captures to delete, the oldest first.

    Args:
        captures: Finished captures of one schedule.
        keep: Captures without findings that stay, the newest ones.
        keep_with_findings: Captures with findings that stay.
    """
    oldest_first = sorted(captures, key=lambda each: (each.ended, each.uid))
    left: list[PastCapture] = []
    for has_findings, kept in ((False, keep), (True, keep_with_findings)):
        same = [each for each in oldest_first if each.has_findings == has_findings]
        left += same[: max(0, len(same) - kept)]
    return sorted(left, key=lambda each: (each.ended, each.uid))
