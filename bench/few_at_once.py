"""Many requests of which only some run at a time."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

PARALLEL: Final = 32


async def few_at_once(work: Iterable[Awaitable[Any]]) -> None:
    """Await all, no more than 32 at a time."""
    limit = asyncio.Semaphore(PARALLEL)

    async def one(item: Awaitable[Any]) -> None:
        async with limit:
            await item

    async with asyncio.TaskGroup() as group:
        for item in work:
            group.create_task(one(item))
