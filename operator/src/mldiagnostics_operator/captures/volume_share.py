"""The share of the volume that the captures of one namespace may use."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreError, StoreForbidden, StoreFull, StoreUnreachable
from mldiagnostics_api.captures.location import Medium
from mldiagnostics_api.captures.policy import OPERATOR_VOLUME

from mldiagnostics_operator.captures import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mldiagnostics_api.captures.location import Location

    from mldiagnostics_operator.storage import Storage

_log: Final = logging.getLogger(__name__)

RESERVE: Final = 10
"""The last tenth of the volume is shared."""
COUNT_AGE_S: Final = 60.0
COUNT_TIMEOUT_S: Final = 10.0
"""A capture waits for a count so long, and then uses the one before; the count goes on for the next capture."""
_GIB: Final = 2**30
_SESSION: Final = re.compile(rf"(?:.*/)?{layout.PROFILE_DIR}/[^/]+(?=/)", re.DOTALL)
"""The directory of the session that has a file; the innermost one, as others may be part of a `storageLocation`."""


def is_used_up(used: int, *, free: int, total: int) -> bool:
    """Return whether a namespace has used its share of a volume.

    In the last tenth of the volume, a namespace may use as much as is left free. So no namespace fills the volume, and
    one that has no files finds room.

    Args:
        used: Bytes of the namespace.
        free: Free bytes of the volume.
        total: All bytes of the volume.
    """
    return _is_shared(free, total) and used > free


def _is_shared(free: int, total: int) -> bool:
    return RESERVE * free < total


class VolumeShare:
    """Checks whether captures may write to the volume.

    A session counts for the namespace that its record names, in any directory; other files count for the namespace
    whose directory of the first level they are in. Captures that run meanwhile are not counted: their number per
    namespace and their traces have limits.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage: Final = storage
        self._volume: Final = storage.directory(OPERATOR_VOLUME)
        self._namespaces: dict[str, str] = {}
        """Namespaces of the counted directories, so that each record is read once."""
        self._last: Mapping[str, int] = {}
        """Bytes of each namespace by the last count that has ended."""
        self._count: _Count | None = None

    async def check(self, namespace: str, directories: Iterable[Location]) -> None:
        """Check the namespace of a capture that writes to these log directories.

        Raises:
            StoreError: The share is used up (`StoreFull`), or the volume does not work.
        """
        if all(each.medium is not Medium.VOLUME for each in directories):
            return
        space = await self._storage.space(OPERATOR_VOLUME)
        if space is None or not _is_shared(space.free, space.total):
            return
        used = (await self._used()).get(namespace, 0)
        if is_used_up(used, free=space.free, total=space.total):
            raise StoreFull(
                f"namespace {namespace}: its files on the volume have {used / _GIB:.1f} GiB and "
                f"{space.free / _GIB:.1f} GiB are free; delete sessions or runs of the namespace, or set a "
                "storageLocation in a bucket"
            )

    async def _used(self) -> Mapping[str, int]:
        """Return the bytes of each namespace, at most a minute old.

        They are older while counting takes too long.
        """
        now = asyncio.get_running_loop().time()
        if self._count is None or self._count.is_outdated(now):
            task = asyncio.ensure_future(self._counted())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
            self._count = _Count(now, task)
        try:
            async with asyncio.timeout(COUNT_TIMEOUT_S):
                return await asyncio.shield(self._count.bytes)
        except TimeoutError:
            return self._last

    async def _counted(self) -> Mapping[str, int]:
        """Count the files of the volume. A directory that cannot be read is left out."""
        sizes = Counter[str]()
        for name in await self._volume.folders():
            try:
                sizes.update(await self._volume.sizes(name, _group))
            except StoreUnreachable:
                raise
            except StoreError as error:
                _log.warning("The files of a directory do not count for the share: %(error)s", {"error": error})
        self._namespaces = {each: self._namespaces.get(each) or await self._namespace(each) for each in sizes}
        used = Counter[str]()
        for each, size in sizes.items():
            used[self._namespaces[each]] += size
        self._last = used
        return used

    async def _namespace(self, group: str) -> str:
        """Return the namespace of a session, or else of the directory of the first level."""
        first, _, is_session = group.partition("/")
        if is_session:
            with suppress(NotStored, StoreForbidden):
                return record.namespace(await self._volume.read(f"{group}/{layout.CAPTURE_RECORD}")) or first
        return first


def _group(key: str) -> str:
    """Return the directory of a file's session, or that of the first level."""
    session = _SESSION.match(key)
    return session[0] if session else key.partition("/")[0]


@dataclass(frozen=True, slots=True)
class _Count:
    begun: float
    bytes: asyncio.Future[Mapping[str, int]]

    def is_outdated(self, now: float) -> bool:
        """Return whether it has failed, or is older than a minute."""
        return self.bytes.done() and (self.bytes.exception() is not None or now > self.begun + COUNT_AGE_S)
