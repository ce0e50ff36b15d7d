"""Whether pods still have the addresses at which they are dialled: asked for many targets in few lists."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.apiserver import ClusterError, Unavailable
from mldiagnostics_kube.retry import retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mldiagnostics_api.pods import PodView

FRESH_S: Final = 1.0
"""An address that was read so recently is dialled without asking again."""


class Addresses:
    """The pods of one capture by uid; `read` reads them anew."""

    def __init__(self, pods: Iterable[PodView], read: Callable[[], Awaitable[Iterable[PodView]]]) -> None:
        self._read = read
        self._known = {pod.uid: pod for pod in pods}
        self._asked_at = asyncio.get_running_loop().time()
        self._lock = asyncio.Lock()

    async def before(self, uid: str, host: str) -> str | None:
        """Say what is wrong with dialling the pod at this address, None if nothing is."""
        return await self._check(uid, host, since=asyncio.get_running_loop().time() - FRESH_S)

    async def after(self, uid: str, host: str) -> str | None:
        """Say whether the answer may come from something else than the pod: it is looked at once more, from now on."""
        return await self._check(uid, host, since=asyncio.get_running_loop().time())

    async def _check(self, uid: str, host: str, *, since: float) -> str | None:
        try:
            await self._refresh(since)
        except ClusterError as failure:
            return f"whether {host} is the pod's address could not be checked: {failure}"
        pod = self._known.get(uid)
        if pod is None:
            return f"the pod (uid {uid}) does not exist any more"
        if pod.finished:
            return f"the pod has ended ({pod.phase}), {host} may belong to another one"
        if pod.ip != host:
            return f"the pod's address is {pod.ip or 'gone'} now, not {host}"
        return None

    async def _refresh(self, since: float) -> None:
        """Read the pods unless that was done since; those who ask meanwhile share the next reading."""
        async with self._lock:
            if self._asked_at >= since:
                return
            asked_at = asyncio.get_running_loop().time()
            self._known = {pod.uid: pod for pod in await retry(self._read, on=Unavailable)}
            self._asked_at = asked_at
