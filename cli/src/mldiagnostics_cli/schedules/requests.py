"""Requests for schedules, with the rights of the user."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_kube.client.apiserver import Conflict, NotFound, path_to
from mldiagnostics_kube.client.cluster import Cluster, connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    Object = dict[str, Any]

T = TypeVar("T")


def list_all(options: ClusterOptions) -> tuple[list[Object], str]:
    """Return the schedules of the namespaces, and the place in words."""

    async def work(cluster: Cluster) -> tuple[list[Object], str]:
        path = path_to(*SCHEDULES.gvr, namespace=cluster.scope)
        found = await _installed(cluster, cluster.client.items(path, dict))
        return sorted(found, key=_key), f"{cluster.place} of {cluster.description}"

    return _run(options, work)


def read(options: ClusterOptions, name: str) -> Object:
    """Return one schedule.

    Raises:
        ConfigurationError: There is no such schedule.
    """
    return _run(options, lambda cluster: _named(cluster, name, cluster.client.get(_path(cluster, name))))


def create(options: ClusterOptions, body: Object, *, dry_run: bool) -> Object:
    """Create a schedule, or only let the API server check it.

    Raises:
        ConfigurationError: The name is in use.
    """

    async def work(cluster: Cluster) -> Object:
        query = "?dryRun=All" if dry_run else ""
        try:
            return await cluster.client.create(f"{path_to(*SCHEDULES.gvr, namespace=cluster.namespace)}{query}", body)
        except Conflict:
            name = body["metadata"]["name"]
            message = f"schedule {name}: exists in namespace '{cluster.namespace}'; delete it, or use another name"
            raise ConfigurationError(message) from None

    return _run(options, work)


def set_suspended(options: ClusterOptions, names: Sequence[str], *, suspended: bool) -> list[Object]:
    """Suspend or resume schedules."""

    async def work(cluster: Cluster) -> list[Object]:
        change = {"spec": {"suspend": suspended}}
        return [await _named(cluster, name, cluster.client.patch(_path(cluster, name), change)) for name in names]

    return _run(options, work)


def delete(options: ClusterOptions, names: Sequence[str]) -> list[Object]:
    """Delete schedules; the cluster deletes their captures, and files are kept."""

    async def work(cluster: Cluster) -> list[Object]:
        found = [await _named(cluster, name, cluster.client.get(_path(cluster, name))) for name in names]
        for each in found:
            meta = each["metadata"]
            await _named(cluster, meta["name"], cluster.client.delete(_path(cluster, meta["name"]), uid=meta["uid"]))
        return found

    return _run(options, work)


def _run(options: ClusterOptions, work: Callable[[Cluster], Awaitable[T]]) -> T:
    async def connected() -> T:
        async with connect(options) as cluster:
            return await work(cluster)

    return asyncio.run(connected())


def _path(cluster: Cluster, name: str) -> str:
    return path_to(*SCHEDULES.gvr, namespace=cluster.namespace, name=name)


async def _installed(cluster: Cluster, request: Awaitable[T]) -> T:
    try:
        return await request
    except NotFound:
        raise ConfigurationError(
            f"{SCHEDULES.kind}: {cluster.description} does not serve it; install or upgrade the operator's chart"
        ) from None


async def _named(cluster: Cluster, name: str, request: Awaitable[T]) -> T:
    try:
        return await request
    except NotFound:
        raise ConfigurationError(
            f"schedule {name}: not found in namespace '{cluster.namespace}' of {cluster.description}; "
            "list them with `mldiag schedules list`"
        ) from None


def _key(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]
