"""Certificates of an HTTPS server: self-managed, or read from a mounted folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mldiagnostics_kube.certificates.authority import Lifetimes
from mldiagnostics_kube.certificates.bundle import WebhookBundle
from mldiagnostics_kube.certificates.mounted import Mounted
from mldiagnostics_kube.certificates.rotation import RotationRules
from mldiagnostics_kube.certificates.selfmanaged import CertificateObjects, RotationTiming, SelfManaged
from mldiagnostics_kube.certificates.serving import ServingCertificate
from mldiagnostics_kube.certificates.trust import TrustStore
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.process.background import running
from mldiagnostics_kube.process.clock import Clock, utc_now

__all__ = [
    "CertificateObjects",
    "Lifetimes",
    "RotationRules",
    "ServingCertificate",
    "TrustStore",
    "WebhookBundle",
    "mounted",
    "self_managed",
]


@asynccontextmanager
async def mounted(folder: Path, clock: Clock = utc_now) -> AsyncIterator[ServingCertificate]:
    """Serve `tls.crt` and `tls.key` of a folder while the block runs."""
    serving = ServingCertificate(clock)
    async with running(Mounted(folder, serving).run()):
        yield serving


@asynccontextmanager
async def self_managed(
    cluster: ApiClient, objects: CertificateObjects, rules: RotationRules, clock: Clock = utc_now
) -> AsyncIterator[ServingCertificate]:
    """Make, rotate and publish a certificate while the block runs.

    Args:
        cluster: Client of the API server.
        objects: The Secret, and the object that publishes the authorities.
        rules: DNS names, lifetimes and waiting times.
        clock: Wall clock.

    Yields:
        The certificate; `ready` is False until there is one.
    """
    serving = ServingCertificate(clock)
    source = SelfManaged(cluster, objects, rules, serving, clock=clock, timing=RotationTiming())
    async with running(source.run()):
        yield serving
