"""The web view as a program in place of this one.

Siblings never import each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import DEFAULT_STORAGE

from mldiagnostics_cli.commands.options import STORAGE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_kube.client.cluster_options import ClusterOptions


_MODULE = "mldiagnostics_view"
_MLDIAG = "mldiagnostics_cli"
"""The view opens sessions in XProf by this command line, as a program of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """Address of the server; None for its default."""

    port: int | None = None
    host: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    opens_browser: bool = True


def start_view(sources: Sequence[str], cluster: ClusterOptions, options: ViewOptions, *, in_cluster: bool) -> int:
    """Serve the view until Ctrl-C; return the exit code.

    It never returns where one program can become another.

    Args:
        sources: Roots of runs: directories and URLs.
        cluster: The cluster and the namespaces.
        options: Address of the server.
        in_cluster: Whether the runs of the cluster are shown, also without options of a cluster.

    Raises:
        ConfigurationError: Nothing is given, and there is neither a directory nor a cluster.
    """
    if not sources and not in_cluster and not cluster.are_given:
        sources = _default_sources(os.environ)
    command = [sys.executable, "-P", "-m", _MODULE, *_arguments(cluster, options), *sources]
    if in_cluster or not sources:
        command.insert(command.index(_MODULE) + 1, "--cluster")
    if os.name == "nt":
        return subprocess.run(command, check=False).returncode
    return os.execv(command[0], command)  # noqa: S606 - the arguments are a list


def _default_sources(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the root by the rule of all commands; empty for the cluster."""
    if storage := environment.get(STORAGE_VARIABLE):
        return (storage,)
    if Path(DEFAULT_STORAGE).is_dir():
        return (DEFAULT_STORAGE,)
    import asyncio  # noqa: PLC0415 - only where there are no files

    from mldiagnostics_kube.client.credentials import find_access  # noqa: PLC0415 - as above

    try:
        asyncio.run(find_access(environment))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{DEFAULT_STORAGE}: no such directory, and no cluster ({error}); pass the root of the runs, or a cluster "
            "with --context"
        ) from error
    return ()


def _arguments(cluster: ClusterOptions, options: ViewOptions) -> list[str]:
    values = {"--mldiag": _MLDIAG, "--host": options.host, "--port": options.port}
    return [
        *cluster.arguments,
        *(f"{name}={value}" for name, value in values.items() if value is not None),
        *(f"--allowed-host={name}" for name in options.allowed_hosts),
        *(() if options.opens_browser else ("--no-open",)),
        "--",
    ]
