"""Deletes finished captures when their time to live is over; what they stored stays."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api import names
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, path_to

from mldiagnostics_operator.captures.retention import LOOK_AGAIN_AT_LEAST, Finished, sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mldiagnostics_kube.client import ApiClient

_log: Final = logging.getLogger(__name__)

_PAGE: Final = 50
"""Finished objects may have results of 224 KiB each."""


class Expiry:
    """Looks at the finished objects of the namespaces (all if none is named) when the first of them may be due."""

    def __init__(self, cluster: ApiClient, namespaces: Collection[str], *, default_ttl_s: int | None) -> None:
        self._cluster = cluster
        self._spaces: Collection[str | None] = namespaces or (None,)
        self._default_ttl_s = default_ttl_s
        self._next_s = math.inf
        self._sooner = asyncio.Event()

    def expect(self, body: Mapping[str, Any]) -> None:
        """Take note of an object that has just finished: there may be something to do when its time is over."""
        ttl_s = self._ttl_s(body)
        if ttl_s is not None:
            self._next_s = min(self._next_s, asyncio.get_running_loop().time() + ttl_s)
            self._sooner.set()

    async def run(self) -> None:
        """Delete what is due, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._next_s = math.inf
            found = sweep(await self._list(), now=datetime.now(UTC))
            for item in found.expired:
                await self._delete(item)
            self._next_s = min(self._next_s, clock() + found.wait.total_seconds())
            await asyncio.sleep(LOOK_AGAIN_AT_LEAST.total_seconds())
            while (wait_s := self._next_s - clock()) > 0:
                self._sooner.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._sooner.wait(), wait_s)

    async def _list(self) -> list[Finished]:
        found: list[Finished] = []
        for space in self._spaces:
            path = path_to(*CONNECTIONS.gvr, namespace=space)
            for phase in sorted(names.FINISHED_PHASES):
                try:
                    found += await self._cluster.items(path, self._reduce, fields=f"status.phase={phase}", page=_PAGE)
                except ClusterError as error:
                    _log.warning("Finished captures could not be listed; their time to live waits: %s", error)
        return found

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
            _log.warning("%s/%s could not be deleted after its time to live: %s", item.namespace, item.name, error)
        else:
            _log.info("Deleted %s/%s after its time to live of %s s", item.namespace, item.name, item.ttl_s)
