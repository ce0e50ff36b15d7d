"""The life of one replica: prepare, stand by, lead, and leave without losing what runs."""

import asyncio
import logging
import os
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from mldiagnostics_kube import http
from mldiagnostics_kube.apiserver import ClusterError
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.cluster_name import cluster_name
from mldiagnostics_kube.lease import Leadership, LeaseTiming

from mldiagnostics_operator import handlers, preflight
from mldiagnostics_operator.captures.controller import CaptureController
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.freshness import Freshness
from mldiagnostics_operator.probes import OperatorHealth, ReplicaStage
from mldiagnostics_operator.telemetry import OperatorMetrics
from mldiagnostics_operator.watching import unfinished, watch

_log: Final = logging.getLogger(__name__)

_RETRY_S: Final = 5.0
_ADDON_CHECK_S: Final = 60.0
_FRESHNESS_CHECK_S: Final = 15.0
# An announcement that is on its way to the API server arrives before the next leader looks.
_INTENT_S: Final = 2.0


async def live(config: OperatorConfig, environ: Mapping[str, str] = os.environ) -> int:
    """Run one replica until SIGTERM or SIGINT, the loss of the Lease or a failure; gives the exit status."""
    health, telemetry = OperatorHealth(), OperatorMetrics()
    async with http.serving(config.http_port, health, telemetry.exposition) as port:
        _log.info("Probes and metrics are served on port %d", port, extra={"port": port})
        cluster = await ApiClient.connect(environ)
        try:
            return await Replica(config, environ, cluster, health, telemetry).run()
        finally:
            await cluster.aclose()


class Replica:
    """One replica; everything that it needs to know of the outside comes in."""

    def __init__(
        self,
        config: OperatorConfig,
        environ: Mapping[str, str],
        cluster: ApiClient,
        health: OperatorHealth,
        telemetry: OperatorMetrics,
    ) -> None:
        self._config = config
        self._environ = environ
        self._cluster = cluster
        self._health = health
        self._telemetry = telemetry
        self._stop = asyncio.Event()
        # The start belongs to it: containers of one pod follow each other under one uid.
        self._me = config.holder(f"{int(time.time())}-{secrets.token_hex(4)}")
        self._leadership = Leadership(
            cluster,
            identity=self._me,
            namespace=config.pod_namespace,
            name=config.lease_name,
            timing=LeaseTiming(config.lease_duration_s, config.lease_renew_deadline_s, config.lease_retry_s),
        )

    async def run(self) -> int:
        """Stand by, lead, leave; gives the exit status."""
        self._listen()
        if not await self._unless_stopped(self._prepare()):
            _log.info("Told to stop before leading")
            await self._release()  # the answer to a last write may have been cut off
            return 0
        _log.info("Leading as %s", self._me)
        self._telemetry.leading(leader=True)
        return await self._lead()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await _cancel([stopping])
            working.result()
            return True
        await _cancel([working])
        return False

    async def _prepare(self) -> None:
        """Return as the leader of a cluster with our resource that nobody else reconciles."""
        await self._until(self._identified, ReplicaStage.STARTING)
        await self._until(self._installed, ReplicaStage.WAITING)
        await self._until(self._unmanaged, ReplicaStage.ASIDE)
        self._health.stage = ReplicaStage.STANDBY
        await self._leadership.acquire()

    async def _until(self, condition: Callable[[], Awaitable[str | None]], stage: ReplicaStage) -> None:
        """Ask again until the condition has nothing to complain of; each new complaint is logged."""
        said: str | None = None
        while True:
            waiting = stage
            try:
                complaint = await condition()
            except ClusterError as error:
                complaint, waiting = str(error), ReplicaStage.STARTING
            if complaint is None:
                return
            self._health.stage = waiting
            if complaint != said:
                _log.warning("%s; asking again every %g s", complaint, _RETRY_S)
                said = complaint
            await asyncio.sleep(_RETRY_S)

    async def _identified(self) -> None:
        name = await cluster_name(self._config.cluster_name, self._environ, self._cluster.get)
        self._config = replace(self._config, cluster_name=name)
        self._telemetry.identify(version=version("mldiagnostics-operator"), cluster=name)
        _log.info("The cluster's name is %s", name)

    async def _installed(self) -> str | None:
        return await preflight.missing(self._cluster)

    async def _unmanaged(self) -> str | None:
        owner = None if self._config.ignore_managed_addon else await preflight.managed_elsewhere(self._cluster)
        self._telemetry.standing_down(aside=owner is not None)
        return owner and f"Standing down, GKE's managed add-on captures here: {owner}"

    async def _lead(self) -> int:
        captures = CaptureController(self._cluster, self._config, self._telemetry, self._me)
        freshness = Freshness()
        work = {
            "captures": asyncio.ensure_future(captures.run()),
            "watch": asyncio.ensure_future(self._watch(captures, freshness)),
            "comparison of the watch": asyncio.ensure_future(self._compare(freshness)),
        }
        ends = {
            "SIGTERM": asyncio.ensure_future(self._stop.wait()),
            "loss of the Lease": asyncio.ensure_future(self._leadership.hold()),
            "managed add-on": asyncio.ensure_future(self._managed()),
        }
        self._health.stage = ReplicaStage.LEADING
        try:
            await asyncio.wait((*work.values(), *ends.values()), return_when=asyncio.FIRST_COMPLETED)
            status = _report({**work, **ends}, failures=work)
            await self._leave(captures, ends.values())
            return status
        finally:
            await _cancel([*ends.values(), *work.values()])

    async def _watch(self, captures: CaptureController, freshness: Freshness) -> None:
        def observe(body: Mapping[str, Any], event: "handlers.Event") -> None:
            freshness.observe(body, event)
            captures.observe(body, event)

        registry = handlers.register(observe)
        await watch(registry, self._cluster, self._config.watch_namespaces, started=self._listen)

    async def _compare(self, freshness: Freshness) -> None:
        """Keep the watch's lag current, for the liveness probe."""
        while True:
            await asyncio.sleep(_FRESHNESS_CHECK_S)
            try:
                stands = await unfinished(self._cluster, self._config.watch_namespaces)
            except ClusterError:
                freshness.forgive()
                lag_s = 0.0
            else:
                lag_s = freshness.compare(stands, asyncio.get_running_loop().time())
            self._health.watch_lag_s = lag_s
            self._telemetry.watch_lag(lag_s)

    async def _managed(self) -> None:
        """Return once a managed add-on has taken over; the next life of this container then stands down."""
        while True:
            await asyncio.sleep(_ADDON_CHECK_S)
            with suppress(ClusterError):
                if await self._unmanaged():
                    return

    async def _leave(self, captures: CaptureController, ends: Collection[asyncio.Future[Any]]) -> None:
        """Let the next leader in, then finish what runs, within the grace."""
        self._health.stage = ReplicaStage.DRAINING
        self._telemetry.leading(leader=False)
        captures.stop_accepting()
        await _cancel(ends)
        draining = asyncio.ensure_future(captures.drain())
        await asyncio.wait((draining,), timeout=_INTENT_S)
        await self._release()
        await asyncio.wait((draining,), timeout=self._config.shutdown_grace_s - _INTENT_S)
        if not draining.done():
            _log.warning("Captures still run after %g s; another replica closes them", self._config.shutdown_grace_s)
        await _cancel([draining])

    async def _release(self) -> None:
        try:
            await self._leadership.release()
        except ClusterError as error:
            _log.warning("The Lease could not be released, it runs out by itself: %s", error)


def _report(tasks: Mapping[str, asyncio.Future[Any]], *, failures: Collection[str]) -> int:
    """Log what ended a leadership; 1 if it was something that should never end, else 0."""
    ended = [name for name, task in tasks.items() if task.done()]
    for name in ended:
        error = tasks[name].exception()
        _log.log(logging.ERROR if error else logging.INFO, "Leaving: %s", name, exc_info=error)
    return int(any(name in failures or tasks[name].exception() for name in ended))


async def _cancel(tasks: Collection[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
