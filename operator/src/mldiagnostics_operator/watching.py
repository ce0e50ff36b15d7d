"""kopf, embedded: it watches our custom resource for the leader and does nothing else."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, cast

import kopf
from mldiagnostics_api import names
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_kube.client import ApiClient

# The captures that are still to be done; the server keeps all others from this process.
_UNFINISHED: Final = ",".join(f"status.phase!={phase}" for phase in sorted(names.FINISHED_PHASES))
_STOP_S: Final = 10.0


class WatchEnded(Exception):
    """kopf gave up; the message says what it could not do."""


async def watch(
    registry: kopf.OperatorRegistry, cluster: ApiClient, namespaces: Collection[str], *, started: Callable[[], None]
) -> None:
    """Watch until cancelled; all namespaces if none is named.

    kopf takes the process's signals while it starts; `started` is called right after, to take them back.
    Raises WatchEnded if kopf ends by itself.
    """

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await _connection(cluster)

    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_settings(),
        identity=cast(Any, names.FIELD_MANAGER),  # else kopf asks for the user's name, which a container's uid has not
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


async def unfinished(cluster: ApiClient, namespaces: Collection[str]) -> dict[str, str]:
    """List what the watch should have brought: uid -> version. Raises ClusterError."""

    def version(body: dict[str, Any]) -> tuple[str, str]:
        return body["metadata"]["uid"], body["metadata"]["resourceVersion"]

    stands: dict[str, str] = {}
    for namespace in namespaces or (None,):
        path = path_to(*CONNECTIONS.gvr, namespace=namespace)
        stands.update(await cluster.items(path, version, fields=_UNFINISHED, metadata_only=True))
    return stands


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


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None  # the kubelet's business
    settings.posting.enabled = False  # events are written by who has something to say
    settings.scanning.disabled = True  # neither namespaces nor definitions are watched: no permission needed
    settings.queueing.worker_limit = 50
    settings.queueing.idle_timeout = 0.05  # with a limit, the default of 5 s lets ten objects through per second
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 60
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = 500
    settings.watching.field_selectors[CONNECTIONS.group, CONNECTIONS.plural] = _UNFINISHED
    settings.networking.request_timeout = 60
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = (1, 1, 2, 3, 5) + (10,) * 60  # ten minutes without an API server
    return settings
