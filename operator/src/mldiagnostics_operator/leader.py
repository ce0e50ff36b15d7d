"""The work of a leader: its controllers, their watch, and the lag of that watch."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_operator.controller import WatchedResource, WatchingController
from mldiagnostics_operator.definitions import Definitions
from mldiagnostics_operator.probes import ReplicaStage
from mldiagnostics_operator.watch_lag import WatchLag
from mldiagnostics_operator.watching import list_versions, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.controller import Controller, Event
    from mldiagnostics_operator.definitions import Uids
    from mldiagnostics_operator.probes import OperatorHealth
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

_LAG_CHECK_S: Final = 15.0


class Leader:
    """The controllers of one leadership."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        cluster: ApiClient,
        namespaces: Collection[str],
        health: OperatorHealth,
        telemetry: OperatorMetrics,
    ) -> None:
        self._controllers = controllers
        self._cluster = cluster
        self._namespaces = namespaces
        self._health = health
        self._telemetry = telemetry
        self._watched = [controller for controller in controllers if isinstance(controller, WatchingController)]
        self._definitions = Definitions(cluster, [controller.resource for controller in self._watched])
        self._lag = WatchLag()

    def start(self, *, watch_started: Callable[[], None]) -> dict[str, asyncio.Future[Any]]:
        """Start the work and return its tasks by name.

        A task ends only if it fails or is cancelled.
        """
        return {
            **{controller.name: asyncio.ensure_future(controller.run()) for controller in self._controllers},
            "watch": asyncio.ensure_future(self._watch(watch_started)),
            "comparison of the watch": asyncio.ensure_future(self._measure_lag()),
        }

    def stop_accepting(self) -> None:
        """Start nothing new; work in progress goes on."""
        for controller in self._controllers:
            controller.stop_accepting()

    async def drain(self) -> None:
        """Return when no work is in progress."""
        await asyncio.gather(*(controller.drain() for controller in self._controllers))

    async def _watch(self, started: Callable[[], None]) -> None:
        watched = [
            WatchedResource(
                resource=controller.resource,
                field_selector=controller.field_selector,
                observe=partial(self._observe, controller),
            )
            for controller in self._watched
        ]
        while True:
            uids = await self._definitions.until_installed(self._report_installed)
            await self._watch_until_replaced(uids, watched, started)
            _log.warning("A custom resource was removed or replaced, and its objects with it: watching anew")
            for controller in self._watched:
                controller.reset()

    async def _watch_until_replaced(
        self, uids: Uids, watched: Sequence[WatchedResource], started: Callable[[], None]
    ) -> None:
        """Watch until a definition is replaced.

        Raises WatchEnded if the watch ends for another reason.
        """
        watching = asyncio.ensure_future(watch(watched, self._cluster, self._namespaces, started=started))
        replacing = asyncio.ensure_future(self._definitions.until_replaced(uids))
        try:
            await asyncio.wait((watching, replacing), return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and not await self._definitions.are_replaced(uids):
                watching.result()
        finally:
            await cancel_all((watching, replacing))

    def _report_installed(self, installed: bool) -> None:
        self._telemetry.resource_missing(missing=not installed)
        if self._health.stage in (ReplicaStage.LEADING, ReplicaStage.WAITING):
            self._health.stage = ReplicaStage.LEADING if installed else ReplicaStage.WAITING

    def _observe(self, controller: WatchingController, body: Mapping[str, Any], event: Event) -> None:
        self._lag.observe(body, event)
        controller.observe(body, event)

    async def _measure_lag(self) -> None:
        """Keep the watch's lag current, for the liveness probe."""
        while True:
            await asyncio.sleep(_LAG_CHECK_S)
            listed: dict[str, str] = {}
            try:
                for controller in self._watched:
                    listed |= await list_versions(
                        self._cluster, controller.resource, controller.field_selector, self._namespaces
                    )
            except ClusterError:
                self._lag.reset()
                lag_s = 0.0
            else:
                lag_s = self._lag.compare(listed, asyncio.get_running_loop().time())
            self._health.watch_lag_s = lag_s
            self._telemetry.watch_lag(lag_s)
