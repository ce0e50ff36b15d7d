"""The part of the operator that keeps runs, as a leader runs it, by a clock that the tests move."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from cluster.ports import free_port
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.runs import resync, run
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.runs.status import cluster_records
from mldiagnostics_operator.runs.watches import creation_failures, pod_examination, pod_watches
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.control_planes import CLUSTER, Running
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest
    from mldiagnostics_kube.client.api_client import ApiClient

_real_unix_s: Final = time.time


class MovedClock:
    """The wall clock in whole seconds, as far ahead as a test moved it."""

    def __init__(self) -> None:
        self._ahead_s = 0

    def unix_s(self) -> float:
        """Return the Unix time."""
        return float(int(_real_unix_s()) + self._ahead_s)

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(self.unix_s(), UTC)

    def move(self, seconds: int) -> None:
        """Let time pass."""
        self._ahead_s += seconds


@dataclass
class RunOperator:
    """A leader, which another one may replace."""

    cluster: ApiClient
    config: OperatorConfig
    session: aiohttp.ClientSession
    clock: MovedClock
    telemetry: OperatorMetrics = field(default_factory=OperatorMetrics)

    @property
    def url(self) -> str:
        """Address of the control plane."""
        return f"https://127.0.0.1:{self.config.control_plane_port}"

    @property
    def peer_url(self) -> str:
        """Address for Google's SDK."""
        return f"http://127.0.0.1:{self.config.peer_port}"

    @property
    def reporting(self) -> Running:
        """Return the maker of pods and tokens."""
        plane: Any = None  # the controller has it
        [namespace] = self.config.watch_namespaces
        reports = self._controller.reports
        return Running(self.cluster, namespace, plane, reports, self.telemetry, self.session, self.url, self.peer_url)

    async def lead(self) -> None:
        """Start a leader, and wait until it answers."""
        self._controller = RunController(
            self.cluster,
            self.config,
            self.telemetry,
            holder="operator/uid/1",
            storage=Storage(self.config.volume_root),
            clock=self.clock.now,
            backoff=Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2),
        )
        self._work = asyncio.create_task(self._controller.run())
        async with asyncio.timeout(DEADLINE_S):
            while not await self._answers():  # noqa: ASYNC110 - its certificate is made first
                await asyncio.sleep(0.05)

    async def stop(self, *, is_killed: bool = False) -> None:
        """End the leader; one that is not killed writes what it has."""
        if not is_killed:
            self._controller.stop_accepting()
            await self._controller.drain()
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    async def _answers(self) -> bool:
        with suppress(aiohttp.ClientError):
            async with self.session.get(self.url):
                return True
        return False


@asynccontextmanager
async def leading(
    cluster: ApiClient, namespace: str, folder: Path, *, root: str, clock: MovedClock | None = None
) -> AsyncIterator[RunOperator]:
    """Run a leader over a namespace while the block runs.

    Args:
        cluster: Client of the operator.
        namespace: The only namespace that it watches, and its own.
        folder: Its volume.
        root: Its default storage.
        clock: Its clock.
    """
    config = OperatorConfig(
        cluster_name=CLUSTER,
        control_plane=True,
        control_plane_port=free_port(),
        peer_port=free_port(),
        pod_namespace=namespace,
        volume_root=folder,
        policy=Policy(default_storage=Location.parse(root)),
        watch_namespaces=(namespace,),
    )
    # Certificates have tests of their own.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        operator = RunOperator(cluster, config, session, clock or MovedClock())
        await operator.lead()
        try:
            yield operator
        finally:
            await operator.stop(is_killed=True)


def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an operator look at everything at once."""
    for module, pauses in _PAUSES:
        for name, value in pauses.items():
            monkeypatch.setattr(module, name, value)


_PAUSES: Final[tuple[tuple[Any, dict[str, Any]], ...]] = (
    (limits, {"JOURNAL_INTERVAL_S": 0.1, "ACCOUNT_INTERVAL_S": 0.1}),
    (cluster_records, {"PAUSE_S": 0.1}),
    (run, {"UPDATE_INTERVAL_S": 0.1}),
    (resync, {"RESYNC_S": 0.5}),
    (pod_watches, {"NOTIFY_S": 0.1}),
    (pod_examination, {"EXAMINED_S": (0.1, 1.0), "PULLS_S": 0.1}),
    (creation_failures, {"PAUSE_S": 0.1}),
)
