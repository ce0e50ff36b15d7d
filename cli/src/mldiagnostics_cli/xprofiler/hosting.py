"""Servers of `xprofiler`: virtual machines, with `--gke` on Kubernetes."""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

import click
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.client.cluster_options import ClusterOptions

from mldiagnostics_cli.deletion import can_confirm
from mldiagnostics_cli.xprof.gce import GCE, MachineSpec, list_on_gce
from mldiagnostics_cli.xprof.hosting import (
    ServerScope,
    connect_instance,
    create_in_cluster,
    create_on_machine,
    delete_instances,
    show_instances,
)
from mldiagnostics_cli.xprof.instances import matching
from mldiagnostics_cli.xprof.manifests import XprofSpec, resources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.commands.options import OutputFormat


_CLUSTER = ClusterOptions(namespace="xprofiler")
_SERVICE_ACCOUNT = "xprofiler"
_ON_GKE = ServerScope(on="kubernetes", cluster=_CLUSTER)


def create_on_gce(
    log_directory: str, name: str | None, output: OutputFormat, *, zone: str, machine_type: str, skip_if_exists: bool
) -> None:
    """Host a log directory on a virtual machine.

    A server of the zone that does so already is shown first.

    Args:
        log_directory: `gs://…`.
        name: Name of the machine; None for a new one.
        output: Format of the result.
        zone: Zone of the machine.
        machine_type: Type of the machine.
        skip_if_exists: Whether no second server is made. Without a terminal to ask at, none is made either.

    Raises:
        ConfigurationError: gcloud is not installed, or the directory is not in a bucket.
        MLDiagnosticsError: gcloud rejects the machine.
    """
    _check_gcloud()
    directory = log_directory.rstrip("/")
    if matching(list_on_gce([zone]), directory):
        show_instances(ServerScope(on=GCE, zones=[zone]), output, wanted=[directory])
        if skip_if_exists or not can_confirm():
            return
        if not click.confirm(f"{directory}: is hosted already. Create another server?", err=True):
            return
    spec = MachineSpec(
        log_directory=directory, zone=zone, name=name or f"xprof-{uuid.uuid4()}", machine_type=machine_type
    )
    create_on_machine(spec, output, another=True)


def create_on_gke(log_directory: str, name: str | None, output: OutputFormat, *, image: str, machine_type: str) -> None:
    """Host a log directory in the current cluster, or show its server.

    Raises:
        ConfigurationError: The directory is not in a bucket, the type is not one of a machine, or the server does not
            start.
        ClusterFailure: The cluster rejects it.
    """
    if not log_directory.startswith("gs://"):
        raise ConfigurationError(
            f"{log_directory}: not in a bucket; pass gs://bucket/path, or show the operator's volume with "
            "`mldiag xprof create volume:///… --on kubernetes --claim CLAIM`"
        )
    spec = XprofSpec(
        name=name or str(uuid.uuid4()),
        log_directory=log_directory.rstrip("/"),
        image=image,
        service_account=_SERVICE_ACCOUNT,
        resources=resources_of(machine_type, None),
    )
    create_in_cluster(_CLUSTER, spec, output, another=False, wait=True, dry_run=False)


def list_servers(
    wanted: Sequence[str], output: OutputFormat, *, zones: Sequence[str], filters: Sequence[str], is_gke: bool
) -> None:
    """Print the servers of names or log directories, or all, after gcloud's filters."""
    show_instances(_scope(zones, filters, is_gke=is_gke), output, wanted=wanted)


def connect_server(log_directory: str, *, zone: str, port: int) -> None:
    """Forward a local port to the server of a log directory by ssh, until Ctrl-C."""
    connect_instance(_scope([zone], is_gke=False), log_directory, port=port, open_page=False)


def delete_servers(wanted: Sequence[str], *, zone: str, is_gke: bool, yes: bool) -> None:
    """Delete the servers of these names or log directories after a confirmation."""
    delete_instances(_scope([zone], is_gke=is_gke), wanted, yes=yes, flag="--quiet")


def _scope(zones: Sequence[str], filters: Sequence[str] = (), *, is_gke: bool) -> ServerScope:
    if is_gke:
        return _ON_GKE
    _check_gcloud()
    return ServerScope(on=GCE, zones=zones, filters=filters)


def _check_gcloud() -> None:
    if shutil.which("gcloud") is None:
        raise ConfigurationError(
            "gcloud: not installed here; install the Google Cloud CLI, or host XProf on this machine or on Kubernetes "
            "with `mldiag xprof`"
        )
