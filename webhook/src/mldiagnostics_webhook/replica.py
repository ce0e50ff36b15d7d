"""The life of one replica: find out where it is, serve, and leave without losing a request."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube import certificates, http
from mldiagnostics_kube.apiserver import ClusterError
from mldiagnostics_kube.certificates import CertificateObjects, RotationRules, ServingCertificate
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.cluster_name import cluster_name

from mldiagnostics_webhook.cache import MetadataCache
from mldiagnostics_webhook.config import WebhookConfig
from mldiagnostics_webhook.review_handler import ReviewHandler
from mldiagnostics_webhook.server import ReviewServer
from mldiagnostics_webhook.telemetry import WebhookMetrics

_log: Final = logging.getLogger(__name__)

_RETRY_S: Final = 2.0
LINGER_S: Final = 5.0
"""How long requests are still taken after SIGTERM: until everybody has learnt that this replica leaves."""


@dataclass(slots=True)
class WebhookHealth:
    """What the probes report."""

    synced: Callable[[], bool]
    """Whether the cache has read what there is."""
    certificate: ServingCertificate | None = None
    serving: bool = False
    leaving: bool = False

    def live(self) -> tuple[bool, str]:
        """Whether a restart would not help: whoever answers this can answer reviews."""
        return True, self.ready()[1]

    def ready(self) -> tuple[bool, str]:
        """Whether reviews are answered as they should be."""
        if self.leaving:
            return False, "leaving"
        if not self.serving:
            return False, "asking for the cluster's name"
        if self.certificate is None or not self.certificate.ready:
            return False, "waiting for a certificate"
        if not self.synced():
            return False, "reading namespaces and workloads"
        return True, "serving"


async def live(config: WebhookConfig, environ: Mapping[str, str] = os.environ) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises ConfigurationError if there is no way to the API server, and whatever makes it impossible to go on.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    telemetry = WebhookMetrics()
    cluster = await ApiClient.connect(environ)
    cache = MetadataCache(cluster, telemetry)
    health = WebhookHealth(lambda: cache.synced)
    async with (
        aclosing(cluster),
        http.serving(config.http_port, health, telemetry.exposition) as port,
        cache.following(),
        _certificate(config, cluster) as certificate,
    ):
        _log.info("Probes and metrics are served on port %d", port, extra={"http_port": port})
        health.certificate = certificate
        telemetry.certificate_ends(lambda: certificate.expires)
        if name := await _cluster_name(config, environ, cluster, stop):
            telemetry.identify(version=version("mldiagnostics-webhook"), cluster=name)
            server = ReviewServer(ReviewHandler(cache, config.injected(name), telemetry).answer, telemetry)
            await _serve(server, config.port, certificate, health, stop)


def _certificate(config: WebhookConfig, cluster: ApiClient) -> AbstractAsyncContextManager[ServingCertificate]:
    if config.certificate_folder:
        return certificates.mounted(config.certificate_folder)
    service = f"{config.service_name}.{config.pod_namespace}.svc"
    objects = CertificateObjects(config.pod_namespace, config.certificate_secret, config.configuration_name)
    return certificates.self_managed(cluster, objects, RotationRules(config.service_name, frozenset({service})))


async def _serve(
    server: ReviewServer,
    port: int,
    certificate: ServingCertificate,
    health: WebhookHealth,
    stop: asyncio.Event,
) -> None:
    """Answer reviews until told to stop, and then as long as anybody may still send one."""
    async with server.serving(port, certificate.context) as listening:
        _log.info("Reviews are answered on port %d", listening, extra={"port": listening})
        health.serving = True
        await stop.wait()
        _log.info("Told to stop; requests are taken for another %g s", LINGER_S)
        health.leaving = True
        server.leave()
        await asyncio.sleep(LINGER_S)


async def _cluster_name(
    config: WebhookConfig, environ: Mapping[str, str], cluster: ApiClient, stop: asyncio.Event
) -> str | None:
    """Find the cluster's name, however long that takes; None if told to stop before."""
    said = ""
    while not stop.is_set():
        try:
            name = await cluster_name(config.cluster_name, environ, cluster.get)
        except (ClusterError, ConfigurationError) as error:
            if str(error) != said:
                _log.warning("The cluster's name is not known yet: %s", error)
                said = str(error)
        else:
            _log.info("The cluster's name is %s", name)
            return name
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _RETRY_S)
    return None
