"""The API for files of a leader: its certificate, its registration, its clients."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.results import API_SERVICE
from mldiagnostics_kube.certificates import Lifetimes, ServingCertificate, pem
from mldiagnostics_kube.certificates.authority import issue, new_authority
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.process.clock import utc_now

from mldiagnostics_operator.results.front_proxy import CONFIG_NAME, CONFIG_NAMESPACE, FrontProxy
from mldiagnostics_operator.results.limits import POLL_S
from mldiagnostics_operator.results.server import ResultsServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.config import OperatorConfig

_log: Final = logging.getLogger(__name__)

LIFETIMES: Final = Lifetimes()
_AUTHENTICATION: Final = path_to("", "v1", "configmaps", namespace=CONFIG_NAMESPACE, name=CONFIG_NAME)
_REGISTRATION: Final = path_to("apiregistration.k8s.io", "v1", "apiservices", name=API_SERVICE)


class ResultsApi:
    """Serves the API for files until it is cancelled.

    The certificate is made at the start and kept in memory: its only clients are API servers, and only the leader
    serves. Their authority is in the registration, the APIService of the chart.

    Args:
        cluster: Client of the API server.
        config: Settings of the operator.
        answered: Called with the HTTP status of each answer.
        clock: Wall clock.
        poll_s: Pause in seconds between two looks at the authorities and the registration.
    """

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        *,
        answered: Callable[[int], None] = lambda _: None,
        clock: Clock = utc_now,
        poll_s: float = POLL_S,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._answered = answered
        self._clock = clock
        self._poll_s = poll_s
        self._last_problem = ""
        self.port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The port, once the server listens."""

    async def run(self) -> None:
        """Serve; start again before the certificate expires, and for new authorities."""
        while True:
            proxy = await self._front_proxy()
            if proxy is None:
                await asyncio.sleep(self._poll_s)
                continue
            context, bundle, until = self._certificate(proxy)
            server = ResultsServer(self._config.volume_root, proxy, answered=self._answered)
            try:
                async with server.serving(self._config.results_port or 0, context) as port:
                    if not self.port.done():
                        self.port.set_result(port)
                        _log.info("The API for files is served on port %(port)d", {"port": port})
                    while self._clock() < until and await self._front_proxy() in (proxy, None):
                        await self._register(bundle)
                        await asyncio.sleep(self._poll_s)
            finally:
                server.close()

    def _certificate(self, proxy: FrontProxy) -> tuple[ssl.SSLContext, str, datetime]:
        """Return a TLS context with a new certificate.

        Returns:
            The context, the authority in base64, and the time after which both are replaced.
        """
        config, now = self._config, self._clock()
        service = config.control_plane_service or "localhost"
        authority = new_authority(f"{service}-results", now, LIFETIMES)
        leaf = issue(authority, [f"{service}.{config.pod_namespace}.svc"], now, LIFETIMES)
        serving = ServingCertificate(self._clock)
        serving.load(pem.of_certificates([leaf.certificate]), pem.of_key(leaf.key))
        context = serving.context
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clusters make their own certificates
        context.load_verify_locations(cadata=proxy.authorities)
        bundle = base64.b64encode(pem.of_certificates([authority.certificate])).decode()
        return context, bundle, leaf.ends - LIFETIMES.leaf_ahead

    async def _front_proxy(self) -> FrontProxy | None:
        """Return the client certificates of API servers; None if they are not known now."""
        try:
            data = (await self._cluster.get(_AUTHENTICATION)).get("data") or {}
            return FrontProxy.of(data)
        except (ClusterError, ValueError) as error:
            self._note(f"ConfigMap {CONFIG_NAMESPACE}/{CONFIG_NAME}: {error}")
            return None

    async def _register(self, bundle: str) -> None:
        """Write the authority of the certificate into the registration."""
        try:
            registered: dict[str, Any] = await self._cluster.get(_REGISTRATION)
            if registered["spec"].get("caBundle") != bundle:
                await self._cluster.patch(_REGISTRATION, {"spec": {"caBundle": bundle}})
        except ClusterError as error:
            self._note(f"APIService {API_SERVICE}: {error}")
        else:
            self._note("")

    def _note(self, problem: str) -> None:
        if problem and problem != self._last_problem:
            _log.warning(
                "Users cannot read files through the API server, it is retried: %(problem)s", {"problem": problem}
            )
        self._last_problem = problem
