"""One replica: prepare, stand by, lead, and stop without losing work."""

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.installation.cluster_name import cluster_name
from mldiagnostics_kube.lease import Leadership, LeaseTiming
from mldiagnostics_kube.process.clock import Clock, utc_now
from mldiagnostics_kube.process.garbage import collected_on_growth
from mldiagnostics_kube.serving import http

from mldiagnostics_operator import preflight
from mldiagnostics_operator.captures.controller import CaptureController
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.controller import ControllerFactory
from mldiagnostics_operator.diagnoses.controller import DiagnosisController
from mldiagnostics_operator.leader import Leader
from mldiagnostics_operator.probes import OperatorHealth, ReplicaStage
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.schedules.controller import ScheduleController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

CONTROLLERS: Final[Sequence[ControllerFactory]] = (
    CaptureController,
    DiagnosisController,
    RunController,
    ScheduleController,
)
"""The work of a leader; a new kind of work is one more entry."""

_RETRY_S: Final = 5.0
_ADDON_CHECK_S: Final = 60.0
_LEASE_LOST: Final = "loss of the Lease"
_HANDOVER_S: Final = 2.0
"""Status writes in flight get this long to reach the API server before the next leader reads."""


async def run(config: OperatorConfig, environ: Mapping[str, str] = os.environ) -> int:
    """Run one replica until it stops, and return the exit status.

    It stops on SIGTERM or SIGINT, and on a failure. A replica that loses the Lease stands by again under another name,
    without the kubelet's pause before a restart.
    """
    health, telemetry = OperatorHealth(), OperatorMetrics()

    def exposition() -> bytes:
        return telemetry.exposition()  # of the present leadership

    async with collected_on_growth(), http.serving(config.http_port, health, exposition) as port:
        _log.info("Probes and metrics are served on port %(port)d", {"port": port})
        cluster = await ApiClient.connect(environ)
        try:
            while (status := await Replica(config, environ, cluster, health, telemetry).run()) is None:
                _log.info("Standing by again")
                telemetry = OperatorMetrics()  # the gauges of the former leadership are not current
            return status
        finally:
            await cluster.aclose()


class Replica:
    """One replica, from its start to its exit status."""

    def __init__(
        self,
        config: OperatorConfig,
        environ: Mapping[str, str],
        cluster: ApiClient,
        health: OperatorHealth,
        telemetry: OperatorMetrics,
        *,
        clock: Clock = utc_now,
    ) -> None:
        self._config = config
        self._environ = environ
        self._cluster = cluster
        self._health = health
        self._telemetry = telemetry
        self._stop_requested = asyncio.Event()
        # The start time is part of the name: containers of one pod follow each other under one uid.
        self._me = config.holder(f"{int(clock().timestamp())}-{secrets.token_hex(4)}")
        self._leadership = Leadership(
            cluster,
            identity=self._me,
            namespace=config.pod_namespace,
            name=config.lease_name,
            timing=LeaseTiming(config.lease_duration_s, config.lease_renew_deadline_s, config.lease_retry_s),
            clock=clock,
        )

    async def run(self) -> int | None:
        """Stand by, lead, stop; return the exit status, None if the Lease was lost."""
        self._handle_signals()
        if not await self._unless_stopped(self._prepare()):
            _log.info("Stopped before leading")
            await self._release()  # a write of the Lease may have arrived although its answer was not read
            return 0
        _log.info("Leading as %(identity)s", {"identity": self._me})
        self._telemetry.leading(leader=True)
        return await self._lead()

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_requested.set)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run the work; return False if a stop was requested first."""
        working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self._stop_requested.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await cancel_all([stopping])
            working.result()
            return True
        await cancel_all([working])
        return False

    async def _prepare(self) -> None:
        """Return as the leader of a cluster that has our resources and no managed add-on."""
        await self._retry_until_ready(self._identify_cluster, ReplicaStage.STARTING)
        await self._retry_until_ready(self._check_installed, ReplicaStage.WAITING)
        await self._retry_until_ready(self._check_unmanaged, ReplicaStage.ASIDE)
        self._health.stage = ReplicaStage.STANDBY
        await self._leadership.acquire()

    async def _retry_until_ready(self, check: Callable[[], Awaitable[str | None]], stage: ReplicaStage) -> None:
        """Repeat a check until it returns no problem; log each new problem once."""
        logged: str | None = None
        while True:
            waiting = stage
            try:
                problem = await check()
            except ClusterError as error:
                problem, waiting = str(error), ReplicaStage.STARTING
            if problem is None:
                return
            self._health.stage = waiting
            if problem != logged:
                _log.warning("%(problem)s; retrying every %(seconds)g s", {"problem": problem, "seconds": _RETRY_S})
                logged = problem
            await asyncio.sleep(_RETRY_S)

    async def _identify_cluster(self) -> None:
        name = await cluster_name(self._config.cluster_name, self._environ, self._cluster.get)
        self._config = replace(self._config, cluster_name=name)
        self._telemetry.identify(version=version("mldiagnostics-operator"), cluster=name)
        _log.info("The cluster's name is %(cluster)s", {"cluster": name})

    async def _check_installed(self) -> str | None:
        return await preflight.missing_resource(self._cluster, [CaptureController.resource])

    async def _check_unmanaged(self) -> str | None:
        addon = None if self._config.ignore_managed_addon else await preflight.managed_addon(self._cluster)
        self._telemetry.standing_down(aside=addon is not None)
        return addon and f"Standing down, GKE's managed add-on captures in this cluster: {addon}"

    async def _lead(self) -> int | None:
        exchange, storage = RunExchange(), Storage(self._config.volume_root)
        controllers = [
            make(self._cluster, self._config, self._telemetry, holder=self._me, exchange=exchange, storage=storage)
            for make in CONTROLLERS
        ]
        leader = Leader(controllers, self._cluster, self._config.watch_namespaces, self._health, self._telemetry)
        work = leader.start(watch_started=self._handle_signals)
        stops = {
            "SIGTERM": asyncio.ensure_future(self._stop_requested.wait()),
            _LEASE_LOST: asyncio.ensure_future(self._leadership.hold()),
            "managed add-on": asyncio.ensure_future(self._wait_for_addon()),
        }
        self._health.stage = ReplicaStage.LEADING
        try:
            await asyncio.wait((*work.values(), *stops.values()), return_when=asyncio.FIRST_COMPLETED)
            ended = [name for name, task in {**work, **stops}.items() if task.done()]
            status = _exit_status({**work, **stops}, failures=work)
            is_drained = await self._drain(leader, stops.values())
            lost = ended == [_LEASE_LOST] and not status
            # With work left over, the process ends: that of a live process is not taken over.
            return None if lost and is_drained and not self._stop_requested.is_set() else status
        finally:
            await cancel_all([*stops.values(), *work.values()])
            storage.close()

    async def _wait_for_addon(self) -> None:
        """Return when a managed add-on appears; the restarted container stands down."""
        while True:
            await asyncio.sleep(_ADDON_CHECK_S)
            with suppress(ClusterError):
                if await self._check_unmanaged():
                    return

    async def _drain(self, leader: Leader, stops: Collection[asyncio.Future[Any]]) -> bool:
        """Let the next leader start, then finish the work within the grace period.

        Returns:
            Whether all work is finished.
        """
        self._health.stage = ReplicaStage.DRAINING
        self._telemetry.leading(leader=False)
        leader.stop_accepting()
        await cancel_all(stops)
        draining = asyncio.ensure_future(leader.drain())
        await asyncio.wait((draining,), timeout=_HANDOVER_S)
        await self._release()
        await asyncio.wait((draining,), timeout=self._config.shutdown_grace_s - _HANDOVER_S)
        is_drained = draining.done()
        if not is_drained:
            _log.warning(
                "Work is still in progress after %(seconds)g s; another replica finishes it",
                {"seconds": self._config.shutdown_grace_s},
            )
        await cancel_all([draining])
        return is_drained

    async def _release(self) -> None:
        try:
            await self._leadership.release()
        except ClusterError as error:
            _log.warning("The Lease could not be released, it expires by itself: %(error)s", {"error": error})


def _exit_status(tasks: Mapping[str, asyncio.Future[Any]], *, failures: Collection[str]) -> int:
    """Log why the leadership ends; return 1 after an error or if `failures` ended."""
    ended = [name for name, task in tasks.items() if task.done()]
    for name in ended:
        error = tasks[name].exception()
        _log.log(logging.ERROR if error else logging.INFO, "Leaving: %(task)s", {"task": name}, exc_info=error)
    return int(any(name in failures or tasks[name].exception() for name in ended))
