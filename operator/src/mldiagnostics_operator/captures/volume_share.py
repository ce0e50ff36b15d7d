"""The share of the volume that the captures of one namespace may use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import StoreFull
from mldiagnostics_api.captures.location import Location, Medium

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics_operator.storage import Storage

RESERVE: Final = 10
"""The last tenth of the volume is shared."""
COUNT_AGE_S: Final = 60.0
COUNT_TIMEOUT_S: Final = 10.0
"""A directory with more files than can be counted in this time is let in; the count goes on for the next capture."""
_GIB: Final = 2**30


def is_used_up(used: int, *, free: int, total: int) -> bool:
    """Return whether a directory has used its share of a volume.

    In the last tenth of the volume, a directory may use as much as is left free. So no namespace fills the volume, and
    one that has no files finds room.

    Args:
        used: Bytes of the directory.
        free: Free bytes of the volume.
        total: All bytes of the volume.
    """
    return _is_shared(free, total) and used > free


def _is_shared(free: int, total: int) -> bool:
    return RESERVE * free < total


class VolumeShare:
    """Checks whether captures may write to the volume.

    By default each namespace has a directory of its own there. Captures that run meanwhile are not counted: their
    number per namespace and their traces have limits.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage: Final = storage
        self._counts: Final = dict[str, _Count]()

    async def check(self, directories: Iterable[Location]) -> None:
        """Check the first level of the log directories of a capture.

        Raises:
            StoreError: A share is used up (`StoreFull`), or the volume does not work.
        """
        on_volume = [each for each in directories if each.medium is Medium.VOLUME and each.segments]
        for name in sorted({each.segments[0] for each in on_volume}):
            await self._check(name)

    async def _check(self, name: str) -> None:
        directory = Location.parse(f"volume:///{name}")
        space = await self._storage.space(directory)
        if space is None or not _is_shared(space.free, space.total):
            return
        used = await self._used(name, directory)
        if is_used_up(used, free=space.free, total=space.total):
            raise StoreFull(
                f"{directory}: its files have {used / _GIB:.1f} GiB and {space.free / _GIB:.1f} GiB of the volume are "
                "free; delete sessions or runs of the namespace, or set a storageLocation in a bucket"
            )

    async def _used(self, name: str, directory: Location) -> int:
        """Return the bytes as of the last minute; 0 if counting takes too long."""
        now = asyncio.get_running_loop().time()
        count = self._counts.get(name)
        if count is None or count.is_outdated(now):
            task = asyncio.ensure_future(self._storage.directory(directory).size())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
            count = self._counts[name] = _Count(now, task)
        try:
            async with asyncio.timeout(COUNT_TIMEOUT_S):
                return await asyncio.shield(count.bytes)
        except TimeoutError:
            return 0


@dataclass(frozen=True, slots=True)
class _Count:
    begun: float
    bytes: asyncio.Future[int]

    def is_outdated(self, now: float) -> bool:
        """Return whether it has failed, or is older than a minute."""
        return self.bytes.done() and (self.bytes.exception() is not None or now > self.begun + COUNT_AGE_S)
