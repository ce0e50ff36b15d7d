"""Deletes finished captures when their time to live is over; their files stay."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api import names
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to

from mldiagnostics_operator.captures.retention import SHORTEST_WAIT, Finished, sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

_log: Final = logging.getLogger(__name__)

_PAGE: Final = 50
"""A small page, because finished objects may have results of 224 KiB each."""


class Expiry:
    """Deletes finished objects; in all namespaces if none is named."""

    def __init__(
        self, cluster: ApiClient, namespaces: Collection[str], *, default_ttl_s: int | None, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._namespaces: Collection[str | None] = namespaces or (None,)
        self._default_ttl_s = default_ttl_s
        self._clock = clock
        self._next_s = math.inf
        self._sooner = asyncio.Event()

    def expect(self, body: Mapping[str, Any]) -> None:
        """Schedule a sweep for an object that has just finished."""
        ttl_s = self._ttl_s(body)
        if ttl_s is not None:
            self._next_s = min(self._next_s, asyncio.get_running_loop().time() + ttl_s)
            self._sooner.set()

    async def run(self) -> None:
        """Delete expired objects until cancelled."""
        monotonic = asyncio.get_running_loop().time
        while True:
            self._next_s = math.inf
            result = sweep(await self._list(), now=self._clock())
            for item in result.expired:
                await self._delete(item)
            self._next_s = min(self._next_s, monotonic() + result.wait.total_seconds())
            await asyncio.sleep(SHORTEST_WAIT.total_seconds())
            while (wait_s := self._next_s - monotonic()) > 0:
                self._sooner.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._sooner.wait()

    async def _list(self) -> list[Finished]:
        finished: list[Finished] = []
        for namespace in self._namespaces:
            path = path_to(*CONNECTIONS.gvr, namespace=namespace)
            for phase in sorted(names.FINISHED_PHASES):
                try:
                    finished += await self._cluster.items(
                        path, self._reduce, fields=f"status.phase={phase}", page=_PAGE
                    )
                except ClusterError as error:
                    _log.warning(
                        "Finished captures could not be listed, they are deleted later: %(error)s", {"error": error}
                    )
        return finished

    def _reduce(self, body: Mapping[str, Any]) -> Finished:
        meta = body["metadata"]
        completed = body.get("status", {}).get("completionTime")
        return Finished(
            namespace=meta["namespace"],
            name=meta["name"],
            uid=meta["uid"],
            finished=datetime.fromisoformat(completed) if completed else None,
            ttl_s=self._ttl_s(body),
        )

    def _ttl_s(self, body: Mapping[str, Any]) -> int | None:
        own = body.get("spec", {}).get("ttlSecondsAfterFinished")
        return self._default_ttl_s if own is None else int(own)

    async def _delete(self, item: Finished) -> None:
        path = path_to(*CONNECTIONS.gvr, namespace=item.namespace, name=item.name)
        try:
            await self._cluster.delete(path, uid=item.uid)
        except (NotFound, Conflict):
            return
        except ClusterError as error:
            _log.warning(
                "%(namespace)s/%(object)s has expired and could not be deleted, retrying later: %(error)s",
                {"namespace": item.namespace, "object": item.name, "error": error},
            )
        else:
            _log.info(
                "Deleted %(namespace)s/%(object)s after its time to live of %(seconds)s s",
                {"namespace": item.namespace, "object": item.name, "seconds": item.ttl_s},
            )
