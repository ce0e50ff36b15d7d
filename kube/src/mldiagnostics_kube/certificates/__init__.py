"""The certificate of an HTTPS server in a cluster: kept by the process itself, or read from a mounted folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mldiagnostics_kube.certificates.mounted import Mounted
from mldiagnostics_kube.certificates.rotation import RotationRules
from mldiagnostics_kube.certificates.selfmanaged import CertificateObjects, RotationTiming, SelfManaged
from mldiagnostics_kube.certificates.serving import Serving
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.clock import Clock, utc_now

__all__ = ["CertificateObjects", "RotationRules", "Serving", "mounted", "self_managed"]


@asynccontextmanager
async def mounted(folder: Path, clock: Clock = utc_now) -> AsyncIterator[Serving]:
    """Serve `tls.crt` and `tls.key` of the folder while the block runs; `ready` says whether there is a certificate."""
    serving = Serving(clock)
    async with _kept(Mounted(folder, serving)):
        yield serving


@asynccontextmanager
async def self_managed(
    cluster: ApiClient, objects: CertificateObjects, rules: RotationRules, clock: Clock = utc_now
) -> AsyncIterator[Serving]:
    """Make, rotate and publish a certificate while the block runs; `ready` says whether there is one."""
    serving = Serving(clock)
    async with _kept(SelfManaged(cluster, objects, rules, serving, clock=clock, pace=RotationTiming())):
        yield serving


@asynccontextmanager
async def _kept(keeper: Mounted | SelfManaged) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        loop = group.create_task(keeper.run())
        try:
            yield
        finally:
            loop.cancel()
