"""Work in slices: other tasks of the event loop run in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")


def finished(work: Generator[None, None, T]) -> T:
    """Return the result of a generator at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


async def sliced(work: Generator[None, None, T]) -> T:
    """Return the result of a generator that yields after each slice of work."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)
