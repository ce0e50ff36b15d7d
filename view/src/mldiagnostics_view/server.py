"""The server: sources, routes and guard, from its start to its end."""

from __future__ import annotations

import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from errno import EADDRINUSE
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.serving.connections import listen

from mldiagnostics_view.curves.open_runs import OpenRuns
from mldiagnostics_view.endpoints.assets import load_assets
from mldiagnostics_view.endpoints.delivery import ResponseDelivery, accepting
from mldiagnostics_view.endpoints.guard import Guard
from mldiagnostics_view.endpoints.problems import problems
from mldiagnostics_view.endpoints.routes import Routes
from mldiagnostics_view.endpoints.turns import RequestTurns
from mldiagnostics_view.limits import MAX_BODY_BYTES
from mldiagnostics_view.sources.catalog import Catalog, short_name
from mldiagnostics_view.sources.files import FileSource
from mldiagnostics_view.xprof.local_servers import XprofServers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from mldiagnostics_view.endpoints.authentication import Authentication
    from mldiagnostics_view.endpoints.bodies import Body
    from mldiagnostics_view.settings import Settings
    from mldiagnostics_view.sources.source import ListedSource
    from mldiagnostics_view.xprof.opening import SessionOpener


@asynccontextmanager
async def serving(settings: Settings, assets: Mapping[str, Body] | None = None) -> AsyncIterator[str]:
    """Serve while the block runs.

    Args:
        settings: Sources and address.
        assets: Files of the page; those of the package by default.

    Yields:
        The URL of the page.

    Raises:
        ConfigurationError: No port can be used, a cluster has no credentials, or the page was not bundled.
    """
    assets = load_assets() if assets is None else assets
    catalog = Catalog(await _sources(settings))
    address = Address(settings.host, settings.ports, settings.names)
    xprof = XprofServers(settings.mldiag) if settings.mldiag and not settings.is_shared else None
    async with listening(catalog, address, assets, xprof=xprof) as port:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        yield f"http://{host}:{port}/"


class Address(NamedTuple):
    """Address of a server, and the names in the URLs of browsers."""

    host: str
    """Empty: all addresses."""
    ports: Sequence[int]
    """Ports to try, in order; 0 is any."""
    names: Sequence[str] = ()


@asynccontextmanager
async def listening(
    catalog: Catalog,
    address: Address,
    assets: Mapping[str, Body],
    authentication: Authentication | None = None,
    *,
    xprof: SessionOpener | None = None,
) -> AsyncIterator[int]:
    """Serve a catalog while the block runs.

    At its end, close the catalog, and end what was started for XProf.

    Args:
        catalog: The runs.
        address: Address of the server.
        assets: Files of the page.
        authentication: Recognises viewers; None shows all to everybody.
        xprof: Opens sessions in XProf; None where they cannot be opened.

    Yields:
        The port.

    Raises:
        ConfigurationError: No port can be used.
    """
    open_runs, guard = OpenRuns(), Guard(address.host, address.names)
    routes = Routes(catalog, open_runs, assets, xprof, guard.names)
    middlewares = [
        ResponseDelivery().middleware,
        problems,
        guard.middleware,
        RequestTurns(routes.is_stream).middleware,
        *([authentication.middleware] if authentication else []),
    ]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_BODY_BYTES)
    app.on_response_prepare.append(guard.add_headers)
    routes.add_to(app)
    async with AsyncExitStack() as ending:  # each ends even if another one fails
        ending.push_async_callback(catalog.aclose)
        ending.push_async_callback(open_runs.aclose)
        if xprof is not None:
            ending.push_async_callback(xprof.aclose)
        yield await ending.enter_async_context(accepting(app, _listener(address)))


def _listener(address: Address) -> socket.socket:
    """Return a socket on the first port of an address that is free."""
    for port in address.ports:
        try:
            return listen(port, address.host)
        except OSError as error:
            if error.errno == EADDRINUSE and port != address.ports[-1]:
                continue
            is_name = isinstance(error, socket.gaierror) or not error.errno
            problem = str(error) if is_name else os.strerror(error.errno or 0).lower()
            raise ConfigurationError(f"--port: {port}: {problem}; pass another port, or 0 for any") from error
    raise ConfigurationError("--port: no port is given; pass a port, or 0 for any")


async def _sources(settings: Settings) -> dict[str, ListedSource]:
    sources: dict[str, ListedSource] = {}
    if settings.cluster is not None:
        from mldiagnostics_view.sources.cluster import ClusterSource  # noqa: PLC0415 - half of the time of a start

        cluster = await ClusterSource.connect(settings.cluster, is_shared=settings.is_shared)
        sources["cluster"] = cluster
    for root in settings.roots:
        sources[short_name(root, sources)] = FileSource(root)
    return sources
