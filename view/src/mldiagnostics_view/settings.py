"""Command line of the server as typed settings."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import DEFAULT_STORAGE, absolute_location
from mldiagnostics_kube.client.cluster_options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Sequence


VIEW_PORT: Final = 8425
_PORTS_TRIED: Final = 10
"""From the default port on, for several views on one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sources of the server, and its address."""

    roots: tuple[str, ...] = ()
    """Roots of runs: absolute paths or URLs."""
    cluster: ClusterOptions | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    """Port to listen on, 0 for any; None for the default or, if that is in use, the next free one."""
    names: tuple[str, ...] = ()
    """Further names under which browsers may reach the server."""
    opens_browser: bool = False
    mldiag: tuple[str, ...] = ()
    """The command `mldiag`, which hosts XProf; empty if it is not installed."""

    @property
    def is_shared(self) -> bool:
        """Return whether others than the user may reach the page."""
        return bool(self.names)

    @property
    def ports(self) -> Sequence[int]:
        """Ports to try, in order."""
        return range(VIEW_PORT, VIEW_PORT + _PORTS_TRIED) if self.port is None else (self.port,)


def parse(arguments: Sequence[str], *, program: str = "mldiag view") -> Settings:
    """Return the settings of a command line.

    Raises:
        ConfigurationError: The page would be reachable from the network without a login.
        SystemExit: The usage is wrong, or help was requested.
    """
    parser = argparse.ArgumentParser(
        prog=program, description="Show runs, curves, goodput and profiles in a browser.", allow_abbrev=False
    )
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="root of runs: a directory or a URL such as s3://bucket/prefix"
    )
    parser.add_argument("--cluster", action="store_true", help="the MLRuns of a cluster, with your kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig of the cluster")
    parser.add_argument("--context", help="context of the kubeconfig")
    parser.add_argument("-n", "--namespace", help="namespace of the runs")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="runs of all namespaces")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, help=f"port, 0 for any (default: {VIEW_PORT}, or the next free one)")
    parser.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME", help="further host name of URLs (repeatable)"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument("--mldiag", metavar="MODULE", help="Python module of the command line, which hosts XProf")
    given = parser.parse_args(arguments)
    cluster = ClusterOptions(
        namespace=given.namespace,
        all_namespaces=given.all_namespaces,
        context=given.context,
        kubeconfig=given.kubeconfig,
    )
    has_cluster = given.cluster or cluster.are_given
    if not given.allowed_host and not _is_loopback(given.host):
        raise ConfigurationError(
            f"--host: '{given.host}' is reachable from the network, and the page has no login; keep 127.0.0.1 and use "
            "an SSH tunnel or `kubectl port-forward`, or add --allowed-host with the name of its URL"
        )
    roots = given.sources or ([] if has_cluster else [DEFAULT_STORAGE])
    return Settings(
        roots=tuple(map(absolute_location, roots)),
        cluster=cluster if has_cluster else None,
        host=given.host,
        port=given.port,
        names=tuple(given.allowed_host),
        opens_browser=not given.no_open,
        mldiag=(sys.executable, "-P", "-m", given.mldiag) if given.mldiag else (),
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; pass a number from 0 to 65535")
    return int(text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
