"""Trial plans: find a capture whose planning ends the process."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.request import CaptureRefusal
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, RequestRejected, Unavailable, path_to
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client import ApiClient

_log: Final = logging.getLogger(__name__)

TRIALS: Final = 2
_TRIAL_S: Final = 10.0


class PlanningTrials:
    """Plans once, one capture at a time, what an earlier process may have ended with.

    The status counts the trials that have begun and not ended. So a capture with a number was being planned, alone,
    when a process ended.

    Args:
        cluster: Client of the API server.
        started: When this process became the leader; captures that are younger need no trial.
    """

    def __init__(self, cluster: ApiClient, started: datetime) -> None:
        self._cluster = cluster
        self._started = started.replace(microsecond=0)  # times of creation are whole seconds
        self._slots = FairSlots(1, per_namespace=1)

    async def refuse(self, meta: ObjectMeta, plan: Callable[[], Awaitable[object]]) -> CaptureRefusal | None:
        """Plan on trial; return the refusal of a capture that has had all its trials."""
        if meta.creation_timestamp is not None and meta.creation_timestamp >= self._started:
            return None
        async with self._slots.slot(meta.namespace):
            with suppress(NotFound, Conflict):  # it was deleted, as its watch will say
                trials = await retry(lambda: self._begin(meta), on=Unavailable)
                if trials > TRIALS:
                    return CaptureRefusal(
                        RefusalReason.PLANNING_FAILED,
                        f"planning: {TRIALS} operator processes ended while they planned only this capture; select "
                        "fewer or smaller pods, and report the operator's log",
                    )
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TRIAL_S):
                        await plan()
                with suppress(ClusterError):  # the next status has no number either
                    await self._count(meta, None)
        return None

    async def _begin(self, meta: ObjectMeta) -> int:
        """Count one more trial in the status, and return the number."""
        current = await self._cluster.get(_path(meta))
        trials = int((current.get("status") or {}).get("planningTrials") or 0) + 1
        if trials <= TRIALS:
            try:
                await self._count(meta, trials)
            except RequestRejected as error:
                _log.warning("The trial of a plan could not be counted: %s", error)
        return trials

    async def _count(self, meta: ObjectMeta, trials: int | None) -> None:
        body = {"metadata": {"uid": meta.uid}, "status": {"planningTrials": trials}}
        await self._cluster.patch(f"{_path(meta)}/status", body)


def _path(meta: ObjectMeta) -> str:
    return path_to(*CONNECTIONS.gvr, namespace=meta.namespace, name=meta.name)
