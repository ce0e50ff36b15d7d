"""Short time limits for calls that end at their limit, and longer ones where a busy machine needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LIMITS_S = (3, 30, 90)


def with_enough_time(
    attempt: Callable[[int], T], is_expected: Callable[[T], bool], *, limits_s: tuple[int, int, int] = _LIMITS_S
) -> T:
    """Return the first expected result, or the one with the longest limit.

    Args:
        attempt: Gets its time limit in seconds.
        is_expected: Whether a result needs no repetition.
        limits_s: The limits in turn.
    """
    for limit_s in limits_s[:-1]:
        if is_expected(result := attempt(limit_s)):
            return result
    return attempt(limits_s[-1])
