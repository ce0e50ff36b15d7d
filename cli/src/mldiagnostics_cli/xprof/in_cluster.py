"""Servers of XProf in the cluster that a command means."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import is_on_volume
from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError, NotFound
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.installation.operator_volume import NAMESPACE, operator_containers

from mldiagnostics_cli.cluster.port_forward import forwarded
from mldiagnostics_cli.output import note
from mldiagnostics_cli.xprof.instances import ENDED, RUNNING, STARTING, free_name, nearest
from mldiagnostics_cli.xprof.kubernetes import (
    READY_LIMIT_S,
    assigns_ids,
    create_on_kubernetes,
    delete_on_kubernetes,
    list_on_kubernetes,
    pod_port,
    start_on_kubernetes,
    wait_until_ready,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics_kube.client.cluster import Cluster
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.cluster.port_forward import PodPort
    from mldiagnostics_cli.xprof.instances import XprofInstance
    from mldiagnostics_cli.xprof.manifests import XprofSpec


async def host_in_cluster(options: ClusterOptions, spec: XprofSpec, *, another: bool, wait: bool) -> XprofInstance:
    """Return the server of a log directory.

    It is made if there is none or `another` one is meant.

    One that has ended is started again.

    Raises:
        ConfigurationError: The log directory cannot be read in a pod, or the server does not start.
        ClusterFailure: The cluster rejects it.
    """
    async with connect(options) as cluster:
        known = await list_on_kubernetes(cluster)
        existing = [] if another else [each for each in known if each.log_directory == spec.log_directory]
        if existing:
            note(f"{spec.log_directory}: is hosted already; `mldiag xprof create --new` makes another server.")
            instance = existing[0]
            if instance.state in ENDED:
                await start_on_kubernetes(cluster, instance)
                instance = replace(instance, state=STARTING)
            return await _waited(cluster, instance) if wait else instance
        name = spec.name or free_name(spec.log_directory, [each.name for each in known])
        has_own_ids = not await assigns_ids(cluster)
        instance = await create_on_kubernetes(cluster, replace(spec, name=name, has_own_ids=has_own_ids))
        return await _waited(cluster, instance) if wait else instance


async def list_in_cluster(options: ClusterOptions) -> list[XprofInstance]:
    """Return the servers of the namespaces that are meant. Raises `ClusterFailure`."""
    async with connect(options) as cluster:
        return await list_on_kubernetes(cluster)


async def find_shown(options: ClusterOptions, log_directory: str) -> tuple[XprofInstance, str] | None:
    """Return the server that shows a log directory, and the path from its own.

    None if the caller sees none.

    Servers of all namespaces are searched, or of the one that is meant if the caller may not list all. The operator's
    volume is shown only where the operator runs.

    Raises:
        ClusterFailure: The cluster cannot be reached.
    """
    async with connect(options) as cluster:
        known: list[XprofInstance] = []
        for scope in (None, cluster.namespace):
            try:
                known = await list_on_kubernetes(replace(cluster, scope=scope))
                break
            except ClusterError as error:
                if error.status not in NOT_PERMITTED:
                    raise
        if is_on_volume(log_directory):
            operators = {NAMESPACE, *(each.namespace for each in await operator_containers(cluster.client))}
            known = [each for each in known if each.namespace in operators]
        return nearest(known, log_directory)


async def delete_in_cluster(options: ClusterOptions, instances: Sequence[XprofInstance]) -> None:
    """Delete servers. Raises `ClusterFailure`."""
    async with connect(options) as cluster:
        for instance in instances:
            await delete_on_kubernetes(cluster, instance)


async def forward_in_cluster(
    options: ClusterOptions, instance: XprofInstance, *, port: int, opened: Callable[[int], None]
) -> None:
    """Forward a port of this machine to a server until the task is cancelled.

    A server that has ended is started again, also if it ends while the port is open and somebody reads it then.

    Args:
        options: Which cluster.
        instance: The server.
        port: Port of this machine; 0 for a free one.
        opened: Called with the port once it is open.

    Raises:
        ConfigurationError: The port is taken, or the server does not start.
        ClusterFailure: The cluster rejects it.
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(connect(options))
        if instance.state != RUNNING:
            await start_on_kubernetes(cluster, instance)
            instance = await _waited(cluster, instance)
        try:
            local_port = await stack.enter_async_context(
                forwarded(
                    cluster.client,
                    lambda: _ready_port(cluster, instance),
                    local_port=port,
                    on_failure=lambda error: note(f"mldiag: {cluster.failure(error)}"),
                )
            )
        except OSError as error:
            raise ConfigurationError(
                f"--port {port}: cannot be used: {error.strerror}; choose another one, or 0 for a free one"
            ) from error
        opened(local_port)
        await asyncio.Event().wait()


async def _ready_port(cluster: Cluster, instance: XprofInstance) -> PodPort:
    """Return the port of the pod of a server.

    Raises `NotFound` while no pod is ready; one is started then.
    """
    try:
        return await pod_port(cluster, instance)
    except NotFound:
        await start_on_kubernetes(cluster, instance)
        raise


async def _waited(cluster: Cluster, instance: XprofInstance) -> XprofInstance:
    if instance.state != RUNNING:
        note(f"{instance.name}: waiting until it answers, for up to {READY_LIMIT_S:g} s.")
    return await wait_until_ready(cluster, instance)
