"""The certificate that the webhook serves: kept by itself, or by whoever fills a mounted folder."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from mldiagnostics_webhook.certificates.mounted import Mounted
from mldiagnostics_webhook.certificates.rotation import Rules
from mldiagnostics_webhook.certificates.selfmanaged import Pace, Place, SelfManaged
from mldiagnostics_webhook.certificates.serving import Serving
from mldiagnostics_webhook.cluster import Cluster
from mldiagnostics_webhook.config import Config

__all__ = ["Serving", "start"]


def _now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def start(config: Config, cluster: Cluster, clock: Callable[[], datetime] = _now) -> AsyncIterator[Serving]:
    """Look after the certificate while the block runs; `ready` of what is given tells when there is one."""
    serving = Serving(clock)
    async with asyncio.TaskGroup() as group:
        keeper = group.create_task(_keeper(config, cluster, serving, clock).run())
        try:
            yield serving
        finally:
            keeper.cancel()


def _keeper(config: Config, cluster: Cluster, serving: Serving, clock: Callable[[], datetime]) -> Mounted | SelfManaged:
    if config.certificate_folder:
        return Mounted(config.certificate_folder, serving)
    service = f"{config.service_name}.{config.pod_namespace}.svc"
    place = Place(config.pod_namespace, config.certificate_secret, config.configuration_name)
    rules = Rules(config.service_name, frozenset({service}))
    return SelfManaged(cluster, place, rules, serving, clock=clock, pace=Pace())
