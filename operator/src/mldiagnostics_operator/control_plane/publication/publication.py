"""The certificate of the control plane, and its address for webhooks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.publication import (
    MAX_CA_CHARACTERS,
    PUBLICATION_NAME,
    PUBLICATION_NAMESPACE,
    Publication,
)
from mldiagnostics_kube import certificates
from mldiagnostics_kube.certificates import CertificateObjects, Lifetimes, RotationRules, ServingCertificate, pem
from mldiagnostics_kube.certificates.trust import FIELD_MANAGER, apply
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to
from mldiagnostics_kube.process.background import running
from mldiagnostics_kube.process.clock import Clock, utc_now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from cryptography import x509
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig

    Json = dict[str, Any]

_log: Final = logging.getLogger(__name__)

LIFETIMES: Final = Lifetimes(authority=timedelta(days=3650), authority_ahead=timedelta(days=365))
"""Pods keep the authorities of their start, so these change as rarely as with cert-manager."""
OVERLAP: Final = timedelta(days=25)
"""Pods up to this age report over a change of the authority: the leaf of the earlier one stays for so long. It is valid
for at least 30 days then."""
PUBLISHED_AUTHORITIES: Final = 4
"""Authorities of 850 characters each fit into `publication.MAX_CA_CHARACTERS`."""
POLL_S: Final = 5.0


@asynccontextmanager
async def certificate(
    cluster: ApiClient, config: OperatorConfig, *, clock: Clock = utc_now
) -> AsyncIterator[ServingCertificate]:
    """Keep and publish the certificate of the control plane while the block runs.

    Args:
        cluster: Client of the API server.
        config: Settings of the operator.
        clock: Wall clock.

    Yields:
        The certificate; `ready` is False until there is one.
    """
    trust = _trust(config)
    if config.control_plane_folder is None:
        service = config.control_plane_service or "localhost"
        names = frozenset({_host(config) if config.control_plane_service else service})
        rules = RotationRules(service, names, LIFETIMES, overlap=OVERLAP)
        objects = CertificateObjects(config.pod_namespace, config.control_plane_secret, trust)
        async with certificates.self_managed(cluster, objects, rules, clock) as serving:
            yield serving
        return
    async with certificates.mounted(config.control_plane_folder, clock) as serving:
        publishing = trust and _MountedPublication(cluster, trust, config.control_plane_folder, serving)
        async with running(publishing.run()) if publishing else nullcontext():
            yield serving


def _host(config: OperatorConfig) -> str:
    return f"{config.control_plane_service}.{config.pod_namespace}.svc"


def _trust(config: OperatorConfig) -> PublishedAddress | None:
    """Return the place of publication, or None without one."""
    if not config.control_plane_publish or not config.control_plane_service:
        return None
    return PublishedAddress(
        f"https://{_host(config)}:{config.control_plane_port}", namespaces=frozenset(config.watch_namespaces)
    )


@dataclass(frozen=True, slots=True)
class PublishedAddress:
    """The ConfigMap as trust store: address and authorities change in one write."""

    url: str
    namespaces: frozenset[str]

    @property
    def path(self) -> str:
        """URL path of the ConfigMap."""
        return path_to("", "v1", "configmaps", namespace=PUBLICATION_NAMESPACE, name=PUBLICATION_NAME)

    @property
    def title(self) -> str:
        """Kind and name of the ConfigMap, for logs."""
        return f"ConfigMap {PUBLICATION_NAMESPACE}/{PUBLICATION_NAME}"

    @property
    def if_missing(self) -> str:
        """Consequence if the ConfigMap does not exist, for logs."""
        return "new pods do not report to this operator; install the chart's objects again"

    def published(self, stored: Mapping[str, Any]) -> tuple[x509.Certificate, ...]:
        """Return the published authorities; damaged ones count as none."""
        try:
            return pem.certificates((stored.get("data") or {}).get("ca.crt", "").encode())
        except ValueError:
            return ()

    def trusts(self, stored: Mapping[str, Any], authority: x509.Certificate) -> bool:
        """Return whether an authority is published."""
        return authority in self.published(stored)

    def changed(self, stored: Mapping[str, Any]) -> datetime | None:
        """Return the time of the operator's latest write, which the API server keeps."""
        entries = stored["metadata"].get("managedFields") or ()
        times = (entry["time"] for entry in entries if entry.get("manager") == FIELD_MANAGER and "time" in entry)
        return max(map(datetime.fromisoformat, times), default=None)

    def publish(self, stored: Mapping[str, Any], trusted: Sequence[x509.Certificate]) -> Json | None:
        """Return a patch with address and authorities, or None if they are published."""
        ca = pem.of_certificates(trusted[:PUBLISHED_AUTHORITIES]).decode()
        data = Publication(url=self.url, ca=ca, namespaces=self.namespaces).data()
        if stored.get("data") == data:
            return None
        metadata = {
            "namespace": PUBLICATION_NAMESPACE,
            "name": PUBLICATION_NAME,
            "resourceVersion": stored["metadata"]["resourceVersion"],
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class _MountedPublication:
    """A loop that publishes the authorities `ca.crt` of a mounted folder."""

    def __init__(self, cluster: ApiClient, trust: PublishedAddress, folder: Path, serving: ServingCertificate) -> None:
        self._cluster = cluster
        self._trust = trust
        self._folder = folder
        self._serving = serving
        self._last_problem = ""

    async def run(self) -> None:
        """Publish until cancelled; failures are logged and retried."""
        while True:
            if self._serving.ready:
                await self._attempt()
            await asyncio.sleep(POLL_S)

    async def _attempt(self) -> None:
        problem = ""
        try:
            change = self._trust.publish(await self._cluster.get(self._trust.path), self._authorities())
            if change is not None:
                await apply(self._cluster, self._trust.path, change)
                _log.info("%(object)s: published %(url)s", {"object": self._trust.title, "url": self._trust.url})
        except NotFound:
            problem = f"{self._trust.title}: not found; {self._trust.if_missing}"
        except (ClusterError, OSError, ValueError) as fault:
            problem = f"{self._trust.title}: not published, it is retried: {fault}"
        if problem and problem != self._last_problem:
            _log.warning("%(problem)s", {"problem": problem})
        self._last_problem = problem

    def _authorities(self) -> tuple[x509.Certificate, ...]:
        """Read the authorities; none if the certificate is of a public one."""
        try:
            text = (self._folder / "ca.crt").read_bytes()
        except FileNotFoundError:
            return ()
        if len(text) > MAX_CA_CHARACTERS:
            raise ValueError(f"ca.crt: {len(text)} characters; at most {MAX_CA_CHARACTERS} fit into a pod")
        return pem.certificates(text)
