"""Control-plane API of a leader: servers, journal, accounts, Service endpoint."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.reports.models import MAX_COMPRESSED_BYTES
from mldiagnostics_kube.serving.bounded_server import BoundedServer, Bounds
from mldiagnostics_kube.serving.connection import ConnectionTimes

from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.http.peer_endpoint import PeerEndpoint
from mldiagnostics_operator.control_plane.http.problems import rejection
from mldiagnostics_operator.control_plane.http.reports_endpoint import ReportsEndpoint
from mldiagnostics_operator.control_plane.identity.attribution import Attribution
from mldiagnostics_operator.control_plane.identity.authentication import Authenticator
from mldiagnostics_operator.control_plane.identity.lookups import Lookups
from mldiagnostics_operator.control_plane.identity.pod_addresses import PodAddresses
from mldiagnostics_operator.control_plane.journal.accounts import Accounts
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.publication.endpoint_slice import EndpointSlice

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_kube.certificates import ServingCertificate
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.serving.bounded_server import Route

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.control_plane.memory.journal_page import JournalPage
    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)
HTTPS: Final = "https"
PEER: Final = "http-peer"
RESULTS: Final = "https-results"
"""Names of the Service's ports."""


class ControlPlane:
    """Serves the control-plane API until it is cancelled.

    Args:
        cluster: Client of the API server.
        config: Settings of the operator.
        telemetry: Metrics of the operator.
        table: The memory of the reports.
        certificate: Certificate of the HTTPS server; handshakes fail until it is loaded.
        storage: Opens the directories of journals.
        clock: Unix time.

    Example:
        plane = ControlPlane(cluster, config, telemetry, ReportTable(), certificate, storage=storage)
        await plane.recall(key)
        await plane.run()
    """

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        table: ReportTable,
        certificate: ServingCertificate,
        *,
        storage: Storage,
        clock: Callable[[], float] = time.time,
        journal_interval_s: float = limits.JOURNAL_INTERVAL_S,
        final_wait_s: float = limits.FINAL_WAIT_S,
        account_interval_s: float = limits.ACCOUNT_INTERVAL_S,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._metrics = telemetry.control_plane
        self._table = table
        self._certificate = certificate
        self.journal = Journal(
            table,
            storage,
            config.policy.default_storage,
            self._note,
            limited=self._metrics.limited,
            interval_s=journal_interval_s,
            final_wait_s=final_wait_s,
        )
        self._accounts = Accounts(table, self.journal.location, config.volume_root, interval_s=account_interval_s)
        lookups = Lookups(self._metrics.looked_up)
        self._authenticator = Authenticator(cluster, lookups, clock)
        self._attribution = Attribution(cluster, lookups, config.cluster_name, clock)
        self._reports = ReportsEndpoint(
            table=table,
            journal=self.journal,
            authenticator=self._authenticator,
            attribution=self._attribution,
            metrics=self._metrics,
            clock=clock,
        )
        self._peer = PeerEndpoint(
            table=table,
            journal=self.journal,
            attribution=self._attribution,
            addresses=PodAddresses(cluster, lookups, config.watch_namespaces, clock),
            cluster_name=config.cluster_name,
            metrics=self._metrics,
            clock=clock,
        )
        self.port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """Port of the HTTPS server, once it listens."""
        self.peer_port: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        """Port of the peer's server, once it listens; None without one."""
        self._metrics.size(lambda: table.run_count, lambda: table.process_count)

    async def run(self) -> None:
        """Serve until cancelled; then answer requests in flight and persist their reports."""
        config = self._config
        try:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                group.create_task(self.journal.run())
                group.create_task(self.journal.keep_counting())
                group.create_task(self._accounts.run())
                group.create_task(self._measure_lateness())
                port = await stack.enter_async_context(
                    self._server(self._reports.route, limits.CONNECTIONS).serving(
                        config.control_plane_port, self._certificate.context
                    )
                )
                ports = {HTTPS: port}
                if config.peer_port is not None:
                    server = self._server(self._peer.route, limits.PEER_CONNECTIONS)
                    ports[PEER] = await stack.enter_async_context(server.serving(config.peer_port, None))
                if config.results_port is not None:
                    ports[RESULTS] = config.results_port
                self.port.set_result(port)
                self.peer_port.set_result(ports.get(PEER))
                _log.info("The control-plane API is served on port %(port)d", {"port": port})
                if config.control_plane_service and config.pod_ip:
                    endpoint = EndpointSlice(
                        self._cluster,
                        namespace=config.pod_namespace,
                        service=config.control_plane_service,
                        address=config.pod_ip,
                        pod=(config.pod_name, config.pod_uid),
                        ports=ports,
                    )
                    group.create_task(endpoint.run())
                await asyncio.get_running_loop().create_future()
        finally:
            await self.journal.close()

    async def _measure_lateness(self) -> None:
        """Let all report less often while this event loop is late."""
        clock = asyncio.get_running_loop().time
        while True:
            due_s = clock() + limits.LATENESS_S
            await asyncio.sleep(limits.LATENESS_S)
            self._table.rate.note(clock() - due_s)

    async def recall(self, key: RunKey) -> None:
        """Add what former leaders persisted of a run to the table.

        Its account is computed if it lacks some of the events, as the run may never report again.

        Raises:
            JournalUnavailable: The storage does not work.
        """
        await self.journal.recall(key, self._table.owner(key))
        run = self._table.view(key)
        if run is not None and run.events_until and (run.goodput is None or run.goodput.as_of != run.events_until):
            self._accounts.note(key)

    def pod_gone(self, uid: str) -> None:
        """Drop the tokens and the run of a pod that does not exist any more."""
        self._authenticator.forget_pod(uid)
        self._attribution.forget_pod(uid)

    def note_record(self, key: RunKey) -> None:
        """Compute the account of a run again: the cluster shows more of its attempts."""
        self._accounts.note(key)

    def pods_missed(self) -> None:
        """Drop all tokens and runs of pods: any pod may have been deleted."""
        self._authenticator.forget_all()
        self._attribution.forget_all()

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run that has ended; its journal stays."""
        self._table.forget(key)
        self.journal.forget(key)
        self._accounts.forget(key)

    def _server(self, route: Route, connections: int) -> BoundedServer:
        bounds = Bounds(
            connections=connections,
            new_per_second=limits.NEW_CONNECTIONS_PER_SECOND,
            handshakes_per_second=limits.HANDSHAKES_PER_SECOND,
            body_bytes=MAX_COMPRESSED_BYTES,
            small_bytes=limits.SMALL_BODY_BYTES,
            large_bytes=limits.LARGE_BODIES_BYTES,
            times=ConnectionTimes(first_request_s=limits.FIRST_REQUEST_S),
            read_s=limits.READ_S,
            finish_s=limits.FINISH_S,
        )
        rejected = self._metrics.rejected
        return BoundedServer(route, bounds, rejected=rejected, closed=rejected, answer=rejection)

    def _note(self, key: RunKey, page: JournalPage | None) -> None:
        self._metrics.journal_written(written=page is not None)
        if page is not None and page.segments:
            self._accounts.note(key)
