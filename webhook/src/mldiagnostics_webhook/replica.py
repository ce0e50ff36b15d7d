"""Lifecycle of one replica: resolve the cluster's name, serve reviews, shut down."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube import certificates
from mldiagnostics_kube.certificates import CertificateObjects, RotationRules, ServingCertificate, WebhookBundle
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.installation.cluster_name import cluster_name
from mldiagnostics_kube.serving import http

from mldiagnostics_webhook.cache import MetadataCache
from mldiagnostics_webhook.config import WebhookConfig
from mldiagnostics_webhook.publication import PublicationReader
from mldiagnostics_webhook.review_handler import ReviewHandler
from mldiagnostics_webhook.server import ReviewServer
from mldiagnostics_webhook.telemetry import WebhookMetrics

_log: Final = logging.getLogger(__name__)

_RETRY_S: Final = 2.0
LINGER_S: Final = 5.0
"""Time in which reviews are still answered after SIGTERM, until every node has removed this replica."""


@dataclass(slots=True)
class WebhookHealth:
    """Results of the probes."""

    synced: Callable[[], bool]
    """Returns whether the cache has read namespaces and workloads."""
    certificate: ServingCertificate | None = None
    publication: PublicationReader | None = None
    """None if a setting names the control plane."""
    serving: bool = False
    leaving: bool = False

    def live(self) -> tuple[bool, str]:
        """Return True: a process that answers this probe can answer reviews."""
        return True, self.ready()[1]

    def ready(self) -> tuple[bool, str]:
        """Return whether reviews are answered, and the state in words."""
        if self.leaving:
            return False, "shutting down"
        if not self.serving:
            return False, "resolving the cluster's name"
        if self.certificate is None or not self.certificate.ready:
            return False, "waiting for a certificate"
        if not self.synced():
            return False, "reading namespaces and workloads"
        if self.publication and not self.publication.settled:
            return False, "reading the address of the control plane"
        return True, "serving"


async def run(config: WebhookConfig, environ: Mapping[str, str] = os.environ) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        ConfigurationError: the environment has no address of an API server.
        Exception: any failure that the replica cannot recover from.
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
        cache.running(),
        _certificate(config, cluster) as certificate,
    ):
        _log.info("Serving probes and metrics on port %(http_port)d", {"http_port": port})
        health.certificate = certificate
        telemetry.certificate_ends(lambda: certificate.expires)
        if name := await _cluster_name(config, environ, cluster, stop):
            telemetry.identify(version=version("mldiagnostics-webhook"), cluster=name)
            handler = ReviewHandler(cache, config.injected(name), telemetry)
            server = ReviewServer(handler.answer, telemetry)
            async with _publication(config, cluster, handler, health):
                await _serve(server, config.port, certificate, health, stop)


def _certificate(config: WebhookConfig, cluster: ApiClient) -> AbstractAsyncContextManager[ServingCertificate]:
    if config.certificate_folder:
        return certificates.mounted(config.certificate_folder)
    service = f"{config.service_name}.{config.pod_namespace}.svc"
    trust = WebhookBundle(config.configuration_name)
    objects = CertificateObjects(config.pod_namespace, config.certificate_secret, trust)
    return certificates.self_managed(cluster, objects, RotationRules(config.service_name, frozenset({service})))


def _publication(
    config: WebhookConfig, cluster: ApiClient, handler: ReviewHandler, health: WebhookHealth
) -> AbstractAsyncContextManager[None]:
    """Follow the published control plane, unless a setting names one."""
    if config.control_plane_url:
        return nullcontext()
    health.publication = PublicationReader(cluster, handler.use)
    return health.publication.running()


async def _serve(
    server: ReviewServer, port: int, certificate: ServingCertificate, health: WebhookHealth, stop: asyncio.Event
) -> None:
    """Answer reviews until `stop` is set, and for `LINGER_S` seconds more."""
    async with server.serving(port, certificate.context) as listening:
        _log.info("Serving reviews on port %(port)d", {"port": listening})
        health.serving = True
        await stop.wait()
        _log.info("Stop requested; reviews are answered for another %(seconds)g s", {"seconds": LINGER_S})
        health.leaving = True
        server.leave()
        await asyncio.sleep(LINGER_S)


async def _cluster_name(
    config: WebhookConfig, environ: Mapping[str, str], cluster: ApiClient, stop: asyncio.Event
) -> str | None:
    """Resolve the cluster's name, with retries; return None if `stop` is set before."""
    last_error = ""
    while not stop.is_set():
        try:
            name = await cluster_name(config.cluster_name, environ, cluster.get)
        except (ClusterError, ConfigurationError) as error:
            if str(error) != last_error:
                _log.warning("The cluster's name cannot be resolved; retrying: %(error)s", {"error": error})
                last_error = str(error)
        else:
            _log.info("The cluster's name is %(cluster)s", {"cluster": name})
            return name
        with suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_S):
                await stop.wait()
    return None
