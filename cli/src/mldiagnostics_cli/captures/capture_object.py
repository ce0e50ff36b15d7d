"""The MLDiagnosticsConnection of a capture in the API.

It is created, and deleted again if nothing has come of it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import NotFound
from mldiagnostics_kube.installation import captures

from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.interruption import Interruption

    Body = Mapping[str, Any]


async def create_or_withdraw(cluster: Cluster, namespace: str, body: Body, interruption: Interruption) -> Body:
    """Create an object and return it, or withdraw it after Ctrl-C.

    Raises:
        Abort: Ctrl-C while it was created; it is deleted then.
        ClusterError: It is rejected, or the cluster cannot be reached.
    """
    try:
        with interruption.stopping(lambda: None):  # the response has the name by which it is deleted
            made: Body = await captures.create_capture(cluster.client, namespace, body)
            if interruption.is_requested:
                await withdraw_capture(cluster, made)
    except asyncio.CancelledError:
        note(f"A capture may have been created; see: kubectl get {CONNECTIONS.definition_name} -n {namespace}")
        raise
    return made


async def withdraw_capture(cluster: Cluster, made: Body) -> NoReturn:
    """Delete an object after Ctrl-C. Raises `Abort`."""
    await delete_capture(cluster, made)
    note(f"{made['metadata']['name']}: deleted before it started")
    raise click.Abort


async def delete_capture(cluster: Cluster, made: Body) -> None:
    """Delete an object; one that is gone counts as deleted."""
    with suppress(NotFound):
        await cluster.client.delete(path_of(made), uid=made["metadata"]["uid"])


def path_of(made: Body) -> str:
    """Return the URL path of an object."""
    metadata = made["metadata"]
    return captures.path_of_capture(metadata["namespace"], metadata["name"])
