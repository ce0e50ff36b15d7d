"""The guard against crash loops: finds a capture whose planning ends the process."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, RequestRejected, path_to

from mldiagnostics_operator.fair_slots import FairSlots
from mldiagnostics_operator.request_retry import retry_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient

_log: Final = logging.getLogger(__name__)

MAX_CRASHES: Final = 2
"""Processes that may end while they plan only one capture."""
_TIMEOUT_S: Final = 10.0


class CrashGuard:
    """Makes the first plan of each older capture alone.

    Such a plan may have ended an earlier process.

    The status counts the plans that have begun and not ended. So a capture with a number was being planned, alone,
    when a process ended.

    Args:
        cluster: Client of the API server.
        started: When this process became the leader; younger captures cannot have ended another one.
    """

    def __init__(self, cluster: ApiClient, started: datetime) -> None:
        self._cluster = cluster
        self._started = started.replace(microsecond=0)  # times of creation are whole seconds
        self._slots = FairSlots(1, per_namespace=1)

    async def refuse(self, meta: ObjectMeta, plan: Callable[[], Awaitable[object]]) -> CaptureRefusal | None:
        """Plan alone; return the refusal of a capture that ended several processes."""
        if meta.creation_timestamp is not None and meta.creation_timestamp >= self._started:
            return None
        async with self._slots.slot(meta.namespace):
            with suppress(NotFound, Conflict):  # it was deleted, as its watch will say
                crashes = await self._begin(meta)
                if crashes > MAX_CRASHES:
                    return CaptureRefusal(
                        RefusalReason.PLANNING_FAILED,
                        f"planning: {MAX_CRASHES} operator processes ended while they planned only this capture; "
                        "select fewer or smaller pods, and report the operator's log",
                    )
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TIMEOUT_S):
                        await plan()
                with suppress(ClusterError):  # the next status has no number either
                    await self._count(meta, None)
        return None

    async def _begin(self, meta: ObjectMeta) -> int:
        """Count one more plan in the status, and return the number."""
        current = await retry_request(lambda: self._cluster.get(_path(meta)))
        plans = int((current.get("status") or {}).get("planningTrials") or 0) + 1
        if plans <= MAX_CRASHES:
            try:
                await retry_request(lambda: self._count(meta, plans))
            except RequestRejected as error:
                _log.warning("The first plan could not be counted: %(error)s", {"error": error})
        return plans

    async def _count(self, meta: ObjectMeta, plans: int | None) -> None:
        body = {"metadata": {"uid": meta.uid}, "status": {"planningTrials": plans}}
        await self._cluster.patch(f"{_path(meta)}/status", body)


def _path(meta: ObjectMeta) -> str:
    return path_to(*CONNECTIONS.gvr, namespace=meta.namespace, name=meta.name)
