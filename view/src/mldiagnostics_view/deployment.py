"""The server in a cluster, with its own service account.

Run `python -m mldiagnostics_view.deployment`.

Behind an authenticating proxy each viewer sees the runs that `kubectl get mlruns` would show. Without one it listens on
the loopback address of its pod alone, which `kubectl port-forward` reaches.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.store.shared import shared_directory
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.process import logs
from mldiagnostics_kube.serving import http

from mldiagnostics_view.authorization import SubjectReviews
from mldiagnostics_view.captures.captures import NoCaptures
from mldiagnostics_view.captures.cluster_captures import ClusterCaptures
from mldiagnostics_view.deployment_settings import load
from mldiagnostics_view.endpoints.assets import load_assets
from mldiagnostics_view.endpoints.authentication import Authentication, ProxyHeaders
from mldiagnostics_view.event_loop import run_to_exit
from mldiagnostics_view.server import Address, listening
from mldiagnostics_view.sources.catalog import Catalog
from mldiagnostics_view.sources.checked_files import CheckedFiles
from mldiagnostics_view.sources.cluster import ClusterSource
from mldiagnostics_view.xprof.hosted import HostedXprof, XprofHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mldiagnostics_view.captures.captures import Captures
    from mldiagnostics_view.deployment_settings import DeploymentConfig
    from mldiagnostics_view.endpoints.bodies import Body


_log: Final = logging.getLogger(__name__)


class _Health:
    """The process serves once it listens; it has nothing that a restart would mend."""

    def live(self) -> tuple[bool, str]:
        return True, "ok"

    def ready(self) -> tuple[bool, str]:
        return True, "ok"


@asynccontextmanager
async def serving(config: DeploymentConfig, client: ApiClient, assets: Mapping[str, Body]) -> AsyncIterator[int]:
    """Serve with the rights of an account while the block runs.

    Args:
        config: The settings.
        client: Client of the account; closed with the server.
        assets: Files of the page.

    Yields:
        The port of the page.

    Raises:
        ConfigurationError: A port is taken, or the secret cannot be read.
    """
    headers = None
    if config.user_header and config.secret_file:
        headers = ProxyHeaders(
            user=config.user_header,
            groups=config.groups_header,
            secret=config.secret_header,
            secret_file=config.secret_file,
        )
    authentication = Authentication(headers, SubjectReviews(client)) if headers else None
    files = CheckedFiles(config.policy, volume_root=config.volume_root)
    captures = _captures(config, client)
    sources = {
        scope or "cluster": _source(client, scope, files, captures) for scope in config.watch_namespaces or (None,)
    }
    xprof = None
    if config.xprof_url and config.xprof_cache:
        xprof = HostedXprof(XprofHost(config.xprof_url, config.xprof_cache, config.xprof_cache_gib * 2**30))
    address = Address("" if headers else "127.0.0.1", (config.port,), config.hosts)
    with nullcontext() if config.volume_root is None else shared_directory(config.volume_root):
        async with listening(Catalog(sources), address, assets, authentication, xprof=xprof) as port:
            yield port


def _source(client: ApiClient, scope: str | None, files: CheckedFiles, captures: Captures) -> ClusterSource:
    place = f"namespace '{scope}'" if scope else "the cluster"
    return ClusterSource(client, scope=scope, place=place, files=files, captures=captures)


def _captures(config: DeploymentConfig, client: ApiClient) -> Captures:
    if not config.captures:
        return NoCaptures("Captures from this page are turned off; the administrator can set view.captures.")
    if not config.user_header:
        return NoCaptures("Captures from this page need an authenticating proxy, which names the viewer.")
    return ClusterCaptures(client, cluster="the cluster")


async def _run(config: DeploymentConfig) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client = await ApiClient.connect()
    async with serving(config, client, load_assets()) as port, http.serving(config.http_port, _Health(), lambda: b""):
        _log.info("The view serves", extra={"port": port, "proxy": bool(config.user_header)})
        await stop.wait()


def main() -> int:
    """Serve until SIGTERM; return the exit status of a start that fails."""
    try:
        config = load(os.environ)
        logs.configure(config.log_level)
        run_to_exit(_run(config))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
