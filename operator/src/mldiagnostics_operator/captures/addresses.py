"""Check that pods still have the addresses that are contacted, with few requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_operator.request_retry import retry_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mldiagnostics_api.workloads.pods import PodView

_log: Final = logging.getLogger(__name__)

FRESH_S: Final = 1.0
"""Age up to which an address is used without reading it again."""


class Addresses:
    """The pods of one capture by uid; `read` reads them again."""

    def __init__(self, pods: Iterable[PodView], read: Callable[[], Awaitable[Iterable[PodView]]]) -> None:
        self._read = read
        self._pods = {pod.uid: pod for pod in pods}
        self._read_at = asyncio.get_running_loop().time()
        self._lock = asyncio.Lock()

    async def before(self, uid: str, host: str) -> str | None:
        """Return why this address must not be contacted for the pod, or None."""
        return await self._check(uid, host, since=asyncio.get_running_loop().time() - FRESH_S)

    async def after(self, uid: str, host: str) -> str | None:
        """Return why an answer from this address may not be the pod's, or None.

        The pod is read again, after this call.
        """
        return await self._check(uid, host, since=asyncio.get_running_loop().time())

    async def _check(self, uid: str, host: str, *, since: float) -> str | None:
        try:
            await self._refresh(since)
        except ClusterError as error:
            _log.warning("The address %(host)s cannot be checked: %(error)s", {"host": host, "error": error})
            return f"could not check that {host} is the pod's address: {error.cause}; see the operator's log"
        pod = self._pods.get(uid)
        if pod is None:
            return f"the pod (uid {uid}) does not exist any more"
        if pod.finished:
            return f"the pod has ended ({pod.phase}); {host} may belong to another pod"
        if pod.ip != host:
            return f"the pod's address is now {pod.ip or 'empty'}, not {host}"
        return None

    async def _refresh(self, since: float) -> None:
        """Read the pods unless they were read since; concurrent callers share one read."""
        async with self._lock:
            if self._read_at >= since:
                return
            read_at = asyncio.get_running_loop().time()
            pods = await retry_request(self._read)
            self._pods = {pod.uid: pod for pod in pods}
            self._read_at = read_at
