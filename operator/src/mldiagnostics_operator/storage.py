"""Log directories for the event loop: blocking stores in bounded thread pools."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from mldiagnostics.errors import ConfigurationError, MissingExtraError, StoreError, StoreUnreachable
from mldiagnostics.store import open_store
from mldiagnostics.store.local import LocalStore
from mldiagnostics.store.model import HEAD_BYTES
from mldiagnostics.store.trial import try_store
from mldiagnostics_api.captures.location import Medium
from mldiagnostics_kube.process.retry import retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Container, Iterator
    from pathlib import Path

    from mldiagnostics.store import Data, Entry, Store, Stored
    from mldiagnostics.store.model import Condition
    from mldiagnostics_api.captures.location import Location

T = TypeVar("T")

PARALLEL: Final = 16
REQUEST_TIMEOUT_S: Final = 30.0
OPEN_STORES: Final = 32
"""Users choose buckets, and each store keeps connections: only the last used ones stay open."""


async def retry_until(call: Callable[[], Awaitable[T]], *, on: type[StoreError], until: float) -> T:
    """Return the result of a call, repeated on the errors `on` until a time.

    A call that hangs is abandoned, as on a network volume whose server is down. `until` is a time of the event loop's
    clock. Raises StoreError; StoreUnreachable for a call that did not return.
    """
    try:
        async with asyncio.timeout_at(until):
            return await retry(call, on=on, until=until)
    except TimeoutError:
        raise StoreUnreachable("the store did not answer in time; check the volume or the network") from None


class Space(NamedTuple):
    """Bytes of a storage."""

    total: int
    free: int


class LogDirectory:
    """One log directory that the operator can write to.

    Every method raises the store's errors (StoreError and its subclasses). Keys and URLs are below the directory; the
    store itself is rooted at the volume or bucket, so that links on a shared volume do not lead out of it.
    """

    def __init__(self, location: Location, store: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
        self.location = location
        self._store = store
        self._pool = pool

    async def put(self, key: str, data: Data, *, replaces: Condition | None = None) -> Stored:
        """Store a file atomically; other content is replaced if `replaces` accepts it.

        The returned `url` is in the form that users write.
        """
        stored = await self._call(lambda: self._store().put(self._inner(key), data, replace=replaces or False))
        return replace(stored, key=key, url=str(self.location.child(key)))

    async def read(self, key: str) -> bytes:
        """Read the first `HEAD_BYTES` of a file, because others may choose its size."""

        def read() -> bytes:
            with self._store().open(self._inner(key)) as file:
                return file.read(HEAD_BYTES)

        return await self._call(read)

    async def load(self, key: str, *, max_bytes: int) -> bytes:
        """Read a whole file that the operator wrote; raise ValueError if it is larger."""

        def load() -> bytes:
            with self._store().open(self._inner(key)) as file:
                content = file.read(max_bytes + 1)
            if len(content) > max_bytes:
                raise ValueError(f"{key}: is larger than {max_bytes} bytes")
            return content

        return await self._call(load)

    async def list(self, prefix: str, *, only: Container[str] | None = None) -> tuple[Entry, ...]:
        """List the files below a directory, or `only` those keys of any number of files."""
        top = len(self._inner(prefix)) - len(prefix)

        def entries() -> Iterator[Entry]:
            for entry in self._store().list(self._inner(prefix)):
                key = entry.key[top:]
                if only is None or key in only:
                    yield replace(entry, key=key)

        return await self._call(lambda: tuple(entries()))

    async def sizes(self, prefix: str, group: Callable[[str], str]) -> Counter[str]:
        """Return the bytes of the files below a directory, by the group of their keys."""
        top = len(self._inner(prefix)) - len(prefix)

        def sizes() -> Counter[str]:
            counted = Counter[str]()
            for entry in self._store().list(self._inner(prefix)):
                counted[group(entry.key[top:])] += entry.bytes
            return counted

        return await self._call(sizes)

    async def folders(self, prefix: str = "") -> tuple[str, ...]:
        """List the names of the directories directly below a directory."""
        inner = "/".join((*self.location.segments, *filter(None, (prefix,))))
        return await self._call(lambda: tuple(self._store().folders(inner)))

    async def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """Delete a file; return False if it did not exist or the condition rejects it."""
        return await self._call(lambda: self._store().delete(self._inner(key), only_if=only_if))

    async def delete_all(self, *, keep: Collection[str] = ()) -> int:
        """Delete the files of the directory, except `keep`; return their number.

        No link is followed.
        """
        kept = {self._inner(key) for key in keep}
        return await self._call(lambda: self._store().delete_all("/".join(self.location.segments), keep=kept))

    async def check(self) -> str:
        """Write, list, read and delete a small file; return its URL."""
        top = "/".join(self.location.segments)
        key = await self._call(lambda: try_store(self._store(), str(self.location), folder=top))
        return str(self.location.child(key))

    def _inner(self, key: str) -> str:
        return "/".join((*self.location.segments, key))

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class OpenStores:
    """The volume, and the buckets that were used last."""

    def __init__(self, volume_root: Path) -> None:
        self._volume = LocalStore(volume_root, shown_as="volume://")  # users never see where it is mounted
        self._opening = Lock()
        self._buckets: dict[str, Store] = {}

    def open(self, location: Location) -> Store:
        """Return the store of a location, in a thread.

        Loading the client of a bucket takes a second.

        Raises:
            StoreError: This installation cannot open buckets of this scheme.
        """
        if location.medium is Medium.VOLUME:
            return self._volume
        bucket = location.bucket
        with self._opening:
            store = self._buckets.pop(bucket, None) or _opened(bucket)
            self._buckets[bucket] = store
            if len(self._buckets) > OPEN_STORES:
                del self._buckets[next(iter(self._buckets))]
            return store


def _opened(bucket: str) -> Store:
    try:
        return open_store(bucket, timeout_s=REQUEST_TIMEOUT_S)
    except (ConfigurationError, MissingExtraError) as error:  # no client of this scheme, or no settings for it
        raise StoreError(str(error)) from error


class Storage:
    """Opens log directories on the operator's volume and in buckets.

    Each kind of work has threads of its own, see `apart`: a store that hangs blocks only the work that uses it.
    """

    def __init__(self, volume_root: Path, *, stores: OpenStores | None = None) -> None:
        self._volume_root = volume_root
        self._stores = stores or OpenStores(volume_root)
        # One pool per medium: calls that hang on the volume do not block writes to buckets.
        self._pools = {
            medium: ThreadPoolExecutor(PARALLEL, thread_name_prefix=f"store-{medium}")
            for medium in Medium
            if medium is not Medium.POD
        }

    def apart(self) -> Storage:
        """Return the same stores with threads of their own, which the caller closes."""
        return Storage(self._volume_root, stores=self._stores)

    def directory(self, location: Location) -> LogDirectory:
        """Return a log directory, without I/O. Raises ValueError for a path in a pod."""
        if location.medium is Medium.POD:
            raise ValueError(f"{location} is a path in the pod; only the pod can write to it")
        return LogDirectory(location, lambda: self._stores.open(location), self._pools[location.medium])

    async def space(self, location: Location) -> Space | None:
        """Return the size of a storage; None if it has no limit or is not there.

        Raises:
            StoreError: The size cannot be read.
        """
        if location.medium is not Medium.VOLUME:
            return None
        pool = self._pools[location.medium]
        try:
            usage = await asyncio.get_running_loop().run_in_executor(pool, shutil.disk_usage, self._volume_root)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{location}: the size of the volume cannot be read: {error.strerror}") from error
        return Space(usage.total, usage.free)

    def close(self) -> None:
        """Stop the threads; writes in progress are finished."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
