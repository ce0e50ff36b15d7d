"""Log directories for the event loop: blocking stores behind a bounded pool of threads."""

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
# Users choose buckets, and each store keeps connections: only the last used ones stay open.
OPEN_STORES: Final = 32


async def retry_until(call: Callable[[], Awaitable[T]], *, on: type[StoreError], until: float) -> T:
    """Repeat a call on the errors `on`, and give up one that hangs, as on a network volume whose server is away.

    `until` is a moment on the event loop's clock. Raises StoreError; StoreUnreachable for a call that gave no answer.
    """
    try:
        async with asyncio.timeout_at(until):
            return await retry(call, on=on, until=until)
    except TimeoutError:
        raise StoreUnreachable("the store gave no answer in time; check the volume or the network") from None


class LogDirectory:
    """One log directory that the operator can write to.

    Every method raises what the store raises (StoreError and its kinds). Keys and URLs are below the directory; the
    store itself is rooted at the volume or bucket, so that links on a shared volume do not lead out of it.
    """

    def __init__(self, location: Location, store: Callable[[], Store], pool: ThreadPoolExecutor) -> None:
        self.location = location
        self._store = store
        self._pool = pool

    async def put(self, key: str, data: Data, *, replaces: bool = False) -> Stored:
        """Store whole, never over another content unless `replaces`; `url` of the receipt is as users write it."""
        stored = await self._call(lambda: self._store().put(self._inner(key), data, replace=replaces))
        return replace(stored, key=key, url=str(self.location.child(key)))

    async def read(self, key: str) -> bytes:
        """Read a small file whole."""

        def read() -> bytes:
            with self._store().open(self._inner(key)) as file:
                return file.read()

        return await self._call(read)

    async def list(self, prefix: str) -> tuple[Entry, ...]:
        """List the files below a directory."""
        top = len(self._inner(prefix)) - len(prefix)
        found = await self._call(lambda: tuple(self._store().list(self._inner(prefix))))
        return tuple(replace(entry, key=entry.key[top:]) for entry in found)

    async def delete(self, key: str) -> bool:
        """Delete a file; false if there was none."""
        return await self._call(lambda: self._store().delete(self._inner(key)))

    def _inner(self, key: str) -> str:
        return "/".join((*self.location.segments, key))

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class Storage:
    """Opens log directories on the operator's volume and in buckets."""

    def __init__(self, volume_root: Path) -> None:
        self._volume_root = volume_root
        # What hangs on the volume must not keep traces from the buckets.
        self._pools = {
            medium: ThreadPoolExecutor(PARALLEL, thread_name_prefix=f"store-{medium}")
            for medium in Medium
            if medium is not Medium.POD
        }
        self._opening = Lock()
        self._stores: dict[str, Store] = {}

    def directory(self, location: Location) -> LogDirectory:
        """Open a log directory; nothing is touched yet. Paths in a pod are not the operator's: ValueError."""
        if location.medium is Medium.POD:
            raise ValueError(f"{location} is a path in the pod, which only the pod can write")
        root = str(self._volume_root) if location.medium is Medium.VOLUME else f"gs://{location.bucket}"
        return LogDirectory(location, lambda: self._open(root), self._pools[location.medium])

    def _open(self, root: str) -> Store:
        """Open the store, in a thread of the pool: loading a client takes a second, so the last ones are kept."""
        with self._opening:
            store = self._stores.pop(root, None) or open_store(root, timeout_s=REQUEST_TIMEOUT_S)
            self._stores[root] = store
            if len(self._stores) > OPEN_STORES:
                del self._stores[next(iter(self._stores))]
            return store

    def close(self) -> None:
        """Let the threads go; what they are writing they write to its end."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
