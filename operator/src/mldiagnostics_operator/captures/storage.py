"""Log directories for the event loop: blocking stores in bounded thread pools."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from mldiagnostics.errors import StoreError, StoreUnreachable
from mldiagnostics.store import open_store
from mldiagnostics_api.location import Medium
from mldiagnostics_kube.retry import retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mldiagnostics.store import Data, Entry, Store, Stored
    from mldiagnostics_api.location import Location

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


class LogDirectory:
    """One log directory that the operator can write to.

    Every method raises the store's errors (StoreError and its subclasses). Keys and URLs are below the directory; the
    store itself is rooted at the volume or bucket, so that links on a shared volume do not lead out of it.
    """

    def __init__(self, location: Location, store: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
        self.location = location
        self._store = store
        self._pool = pool

    async def put(self, key: str, data: Data, *, replaces: bool = False) -> Stored:
        """Store a file atomically; other content is replaced only with `replaces`.

        The returned `url` is in the form that users write.
        """
        stored = await self._call(lambda: self._store().put(self._inner(key), data, replace=replaces))
        return replace(stored, key=key, url=str(self.location.child(key)))

    async def read(self, key: str) -> bytes:
        """Read a small file."""

        def read() -> bytes:
            with self._store().open(self._inner(key)) as file:
                return file.read()

        return await self._call(read)

    async def list(self, prefix: str) -> tuple[Entry, ...]:
        """List the files below a directory."""
        top = len(self._inner(prefix)) - len(prefix)
        entries = await self._call(lambda: tuple(self._store().list(self._inner(prefix))))
        return tuple(replace(entry, key=entry.key[top:]) for entry in entries)

    async def delete(self, key: str) -> bool:
        """Delete a file; return False if it did not exist."""
        return await self._call(lambda: self._store().delete(self._inner(key)))

    def _inner(self, key: str) -> str:
        return "/".join((*self.location.segments, key))

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class Storage:
    """Opens log directories on the operator's volume and in buckets."""

    def __init__(self, volume_root: Path) -> None:
        self._volume_root = volume_root
        # One pool per medium: calls that hang on the volume do not block writes to buckets.
        self._pools = {
            medium: ThreadPoolExecutor(PARALLEL, thread_name_prefix=f"store-{medium}")
            for medium in Medium
            if medium is not Medium.POD
        }
        self._opening = Lock()
        self._stores: dict[str, Store] = {}

    def directory(self, location: Location) -> LogDirectory:
        """Return a log directory, without I/O. Raises ValueError for a path in a pod."""
        if location.medium is Medium.POD:
            raise ValueError(f"{location} is a path in the pod; only the pod can write to it")
        root = str(self._volume_root) if location.medium is Medium.VOLUME else f"gs://{location.bucket}"
        return LogDirectory(location, lambda: self._open(root), self._pools[location.medium])

    def _open(self, root: str) -> Store:
        """Open a store in a thread of the pool: loading a client takes a second."""
        with self._opening:
            store = self._stores.pop(root, None) or open_store(root, timeout_s=REQUEST_TIMEOUT_S)
            self._stores[root] = store
            if len(self._stores) > OPEN_STORES:
                del self._stores[next(iter(self._stores))]
            return store

    def close(self) -> None:
        """Stop the threads; writes in progress are finished."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
