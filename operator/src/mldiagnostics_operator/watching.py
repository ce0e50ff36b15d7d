"""kopf, embedded: watch the resources of the controllers, and nothing else."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, cast

import kopf
from mldiagnostics_api import names
from mldiagnostics_api.resources import Resource
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to

from mldiagnostics_operator import handlers
from mldiagnostics_operator.controller import WatchedResource

_STOP_S: Final = 10.0
_PAGE: Final = 20
"""Objects of one response: each may have 1.5 MiB, and several times as much while it is parsed."""


class WatchEnded(Exception):
    """kopf stopped by itself; the message names the task that ended."""


async def watch(
    watched: Sequence[WatchedResource],
    cluster: ApiClient,
    namespaces: Collection[str],
    *,
    started: Callable[[], None],
) -> None:
    """Watch the resources until cancelled, in all namespaces if none is named.

    kopf installs its own signal handlers while it starts; `started` is called right after, to replace them.
    Raises WatchEnded if kopf ends by itself.
    """
    registry = handlers.register(watched)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await _connection(cluster)

    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_settings(watched),
        identity=cast("Any", names.FIELD_MANAGER),  # else kopf looks up the user's name, and a container's uid has none
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    started()
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_STOP_S)
    first = ended.pop()
    raise WatchEnded(f"the {first.get_name()} ended") from first.exception()


async def list_versions(
    cluster: ApiClient, resource: Resource, field_selector: str, namespaces: Collection[str]
) -> dict[str, str]:
    """List the objects that the watch should have delivered: uid -> resourceVersion.

    Raises ClusterError.
    """

    def version(body: dict[str, Any]) -> tuple[str, str]:
        return body["metadata"]["uid"], body["metadata"]["resourceVersion"]

    versions: dict[str, str] = {}
    for namespace in namespaces or (None,):
        path = path_to(*resource.gvr, namespace=namespace)
        versions.update(await cluster.items(path, version, fields=field_selector, metadata_only=True))
    return versions


async def _connection(cluster: ApiClient) -> kopf.ConnectionInfo:
    access = cluster.access
    return kopf.ConnectionInfo(
        server=access.server,
        insecure=access.insecure,
        ca_data=access.ca_pem,
        token=await access.token() or None,
        certificate_data=access.certificate_pem,
        private_key_data=access.key_pem,
    )


def _settings(watched: Iterable[WatchedResource]) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None  # the kubelet ends a process that does not stop
    settings.posting.enabled = False  # controllers write their events themselves
    settings.scanning.disabled = True  # neither namespaces nor definitions are watched: no permission needed
    settings.queueing.worker_limit = 50
    settings.queueing.idle_timeout = 0.05  # with a limit, the default of 5 s lets ten objects through per second
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 60
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = _PAGE
    for each in watched:
        if each.field_selector:
            settings.watching.field_selectors[each.resource.group, each.resource.plural] = each.field_selector
    settings.networking.request_timeout = 60
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = (1, 1, 2, 3, 5) + (10,) * 60  # ten minutes without an API server
    return settings
