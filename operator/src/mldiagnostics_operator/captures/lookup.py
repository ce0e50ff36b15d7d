"""Read the inputs of a plan from the cluster: pods, their owners, the workload."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.owners import missing_owners
from mldiagnostics_api.plan import PodInventory
from mldiagnostics_api.pods import PodView
from mldiagnostics_api.workloads import workload_of
from mldiagnostics_kube.apiserver import NotFound, RequestRejected, path_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mldiagnostics_api.owners import ObjectReference
    from mldiagnostics_api.request import CaptureRequest
    from mldiagnostics_api.workloads import Object
    from mldiagnostics_kube.client import ApiClient

_log: Final = logging.getLogger(__name__)

FEW: Final = 20
"""Up to this number objects are read one by one; more are listed."""
_PARALLEL: Final = 8
_PODS: Final = ("", "v1", "pods")


class Lookup:
    """Reads the objects that requests name, a few requests at a time.

    Every method raises Unavailable or RequestRejected.
    """

    def __init__(self, cluster: ApiClient) -> None:
        self._cluster = cluster
        self._limit = asyncio.Semaphore(_PARALLEL)

    async def find(self, request: CaptureRequest) -> PodInventory:
        """Read the inputs of a plan; objects that do not exist are absent."""
        async with self._limit:
            workload = await self._workload(request)
            pods = await self._pods(request, workload)
            return PodInventory(
                pods=pods,
                workload=workload,
                owners=await self._owners(pods),
                namespace_labels=await self._namespace_labels(request.namespace),
                nearby=await self._nearby(request, workload, pods),
            )

    async def pods(self, request: CaptureRequest, workload: Object | None) -> list[PodView]:
        """Read the pods again, as they are now."""
        async with self._limit:
            return await self._pods(request, workload)

    async def _workload(self, request: CaptureRequest) -> Object | None:
        if request.workload is None:
            return None
        kind, namespace, name = request.workload, request.namespace, request.workload_name
        for version in kind.versions:
            workload = await self._get((kind.group, version, kind.plural), namespace=namespace, name=name)
            if workload is not None:
                return workload
        return None

    async def _pods(self, request: CaptureRequest, workload: Object | None) -> list[PodView]:
        pods = path_to(*_PODS, namespace=request.namespace)
        if request.pods and len(request.pods) <= FEW:
            reads = (self._get(_PODS, namespace=request.namespace, name=name) for name in request.pods)
            named = await asyncio.gather(*reads)
            return [PodView.of(pod) for pod in named if pod is not None]
        if request.pods:
            names = frozenset(request.pods)
            matching = await self._cluster.items(pods, lambda pod: pod["metadata"]["name"] in names and PodView.of(pod))
            return [pod for pod in matching if pod]
        selector = request.selector
        if request.workload is not None:
            selector = request.workload.pods(workload) if workload is not None else None
        return await self._cluster.items(pods, PodView.of, labels=selector) if selector else []

    async def _owners(self, pods: Iterable[PodView]) -> Mapping[ObjectReference, Object | None]:
        known: dict[ObjectReference, Object | None] = {}
        first = [pod.controller for pod in pods]
        while missing := missing_owners(first, known):
            kinds: defaultdict[tuple[str, str, str], list[ObjectReference]] = defaultdict(list)
            for reference in missing:
                kinds[reference.api_version, reference.kind, reference.namespace].append(reference)
            for references in kinds.values():
                known.update(await self._metadata(references))
        return known

    async def _metadata(self, references: list[ObjectReference]) -> Mapping[ObjectReference, Object | None]:
        """Read the metadata of objects of one kind and namespace.

        Objects that the operator may not read count as absent.
        """
        one = references[0]
        kind = workload_of(one.kind, one.api_version)
        group, _, version = one.api_version.rpartition("/")
        resource = group, version, kind.plural if kind else ""
        metadata: dict[str, Object | None] = {}
        names = {reference.name for reference in references}
        try:
            if len(names) <= FEW:
                ordered = sorted(names)
                reads = (
                    self._get(resource, namespace=one.namespace, name=name, metadata_only=True) for name in ordered
                )
                metadata = dict(zip(ordered, await asyncio.gather(*reads), strict=True))
            else:
                path = path_to(*resource, namespace=one.namespace)
                listed = await self._cluster.items(
                    path, lambda item: _metadata_if_named(item, names), metadata_only=True
                )
                metadata = {item["metadata"]["name"]: item for item in listed if item}
        except (NotFound, RequestRejected) as error:
            _log.warning("The owners of the pods cannot be read: %s", error)
        return {reference: metadata.get(reference.name) for reference in references}

    async def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        body = await self._get(("", "v1", "namespaces"), name=namespace, metadata_only=True)
        return (body or {}).get("metadata", {}).get("labels") or {}

    async def _nearby(self, request: CaptureRequest, workload: Object | None, pods: list[PodView]) -> tuple[str, ...]:
        """Return names of existing objects, for the message about one that does not exist."""
        kind = request.workload
        if kind is not None and workload is None:
            return await self._names(path_to(kind.group, kind.versions[0], kind.plural, namespace=request.namespace))
        if len(pods) < len(request.pods) or (request.selector is not None and not pods):
            return await self._names(path_to(*_PODS, namespace=request.namespace))
        return ()

    async def _names(self, path: str) -> tuple[str, ...]:
        """List the names; empty if the kind is not installed or may not be read."""
        try:
            return tuple(
                await self._cluster.items(path, lambda item: str(item["metadata"]["name"]), metadata_only=True)
            )
        except (NotFound, RequestRejected):
            return ()

    async def _get(
        self, resource: tuple[str, str, str], *, name: str, namespace: str | None = None, metadata_only: bool = False
    ) -> dict[str, Any] | None:
        """Read an object by group, version and plural; None if it does not exist."""
        try:
            path = path_to(*resource, namespace=namespace, name=name)
            return await self._cluster.get(path, metadata_only=metadata_only)
        except NotFound:
            return None


def _metadata_if_named(item: dict[str, Any], names: Collection[str]) -> dict[str, Any] | None:
    """Return the metadata of an object with one of the names, without managedFields."""
    if item["metadata"]["name"] not in names:
        return None
    item["metadata"].pop("managedFields", None)
    return item
