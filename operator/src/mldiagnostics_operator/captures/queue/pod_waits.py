"""Captures that wait for pods: bounded per namespace, woken by one watch."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.client.apiserver import ClusterError, path_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mldiagnostics_kube.client.api_client import ApiClient

_log: Final = logging.getLogger(__name__)

_SETTLE_S: Final = 0.5
"""Changes in this time are looked at together."""
_SHORTEST_GAP_S: Final = 0.25
_GAP: Final = 4.0
"""Pause after a plan, as a multiple of its time: the waits of a namespace use a fifth of one look-up slot."""
_RETRY_S: Final = 5.0


class TooManyWaits(Exception):
    """As many captures of the namespace wait as may."""


class PodWaits:
    """The captures that wait for pods.

    Args:
        cluster: Client of the API server.
        per_namespace: Captures of one namespace that may wait at the same time.
    """

    def __init__(self, cluster: ApiClient, *, per_namespace: int) -> None:
        self.per_namespace: Final = per_namespace
        self._cluster = cluster
        self._waiting = Counter[str]()
        self._watches: dict[str, _PodWatch] = {}

    @asynccontextmanager
    async def join(self, tenant: str, namespace: str) -> AsyncIterator[PodWait]:
        """Wait for pods of `namespace` in the block, as a capture of `tenant`.

        Raises TooManyWaits.
        """
        if self._waiting[tenant] >= self.per_namespace:
            raise TooManyWaits
        if namespace not in self._watches:
            self._watches[namespace] = _PodWatch(self._cluster, namespace)
        watch = self._watches[namespace]
        wait = PodWait(watch)
        self._waiting[tenant] += 1
        watch.waits.add(wait)
        try:
            yield wait
        finally:
            self._waiting -= Counter((tenant,))
            watch.waits.discard(wait)
            if not watch.waits:
                del self._watches[namespace]
                watch.stop()


class PodWait:
    """One capture that waits."""

    def __init__(self, watch: _PodWatch) -> None:
        self.changed: Final = asyncio.Event()
        self._watch = watch

    async def until_changed(self, timeout_s: float) -> None:
        """Wait until pods may have changed and this capture may plan again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.changed.wait()
                await asyncio.sleep(_SETTLE_S)
                await self._watch.turn()
        self.changed.clear()

    def planned(self, seconds: float) -> None:
        """Take note of how long the last plan took: expensive plans are made less often."""
        self._watch.gap_s = max(_SHORTEST_GAP_S, _GAP * seconds)


class _PodWatch:
    """The watch of one namespace's pods; it keeps nothing of them."""

    def __init__(self, cluster: ApiClient, namespace: str) -> None:
        self.waits: set[PodWait] = set()
        self.gap_s = _SHORTEST_GAP_S
        self._cluster = cluster
        self._path = path_to("", "v1", "pods", namespace=namespace)
        self._next_turn = 0.0
        self._task = asyncio.create_task(self._run(), name=f"watch of pods in {namespace}")

    def stop(self) -> None:
        """Stop watching; returns at once."""
        self._task.cancel()

    async def turn(self) -> None:
        """Wait for the next turn; there is one every `gap_s`."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_turn)
        self._next_turn = turn + self.gap_s
        await asyncio.sleep(turn - now)

    async def _run(self) -> None:
        """Wake the captures at every change, and after every time without a watch."""
        while True:
            try:
                version = await self._cluster.version(self._path)
                self._wake()
                async for event in self._cluster.watch(self._path, version, metadata_only=True):
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self._wake()
            except ClusterError as error:
                _log.warning("Waits for pods fall back to polling: %(error)s", {"error": error})
            await asyncio.sleep(_RETRY_S)

    def _wake(self) -> None:
        for wait in self.waits:
            wait.changed.set()
