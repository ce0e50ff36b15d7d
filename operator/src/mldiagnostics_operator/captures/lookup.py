"""Read the inputs of a plan from the cluster: pods, their owners, the workload."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mldiagnostics_api.not_found import MAX_NEARBY, too_many_targets
from mldiagnostics_api.owners import missing_owners, reduced
from mldiagnostics_api.plan import PodInventory
from mldiagnostics_api.pods import PodView
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.targets import MAX_TARGETS
from mldiagnostics_api.v1alpha1 import read_run
from mldiagnostics_api.workloads import KINDS_WITH_POSITIONS, LONE_POD, workload_of
from mldiagnostics_kube.apiserver import NotFound, RequestRejected, Unavailable, path_to

from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

    from mldiagnostics_api.owners import ObjectReference
    from mldiagnostics_api.request import CaptureRefusal, CaptureRequest
    from mldiagnostics_api.v1alpha1 import MLRunObject
    from mldiagnostics_api.workloads import Object, WorkloadKind
    from mldiagnostics_kube.client import ApiClient

    T = TypeVar("T")
    Keep = Callable[[dict[str, Any]], T]

_log: Final = logging.getLogger(__name__)

FEW: Final = 20
"""Up to this number objects are read one by one; more are listed."""
_PARALLEL: Final = 8
_PER_NAMESPACE: Final = 2
"""A namespace with large or many pods leaves the other look-ups to the other namespaces."""
_PARALLEL_READS: Final = 4
"""Reads of whole objects in one look-up; an object takes up to 9 MiB."""
LOOKUP_S: Final = 30.0
"""10 000 pods take 4 s."""
_PODS: Final = ("", "v1", "pods")


class LookupRefused(Exception):
    """The request needs more than a look-up may read."""

    def __init__(self, refusal: CaptureRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Lookup:
    """Reads the objects that requests name, fairly between namespaces.

    Every method ends within 40 s after its turn, and raises LookupRefused, Unavailable or RequestRejected.
    """

    def __init__(self, cluster: ApiClient) -> None:
        self._cluster = cluster
        self._plans = FairSlots(_PARALLEL, per_namespace=_PER_NAMESPACE)
        self._checks = FairSlots(_PARALLEL, per_namespace=_PER_NAMESPACE)

    async def find(self, request: CaptureRequest) -> PodInventory:
        """Read the inputs of a plan; objects that do not exist are absent."""
        async with _turn(self._plans, request.tenant, request.description):
            workload, selector = await self._workload(request)
            pods = await self._pods(request, selector)
            return PodInventory(
                pods=pods,
                pod_selector=selector,
                workload=workload,
                owners=await self._owners(pods),
                namespace_labels=await self._namespace_labels(request.namespace),
                nearby=await self._nearby(request, workload, pods),
            )

    async def run(self, tenant: str, name: str) -> MLRunObject | None:
        """Read the MLRun of a namespace; None if it does not exist.

        Raises ValueError if its fields are invalid.
        """
        async with _turn(self._plans, tenant, f"MLRun {tenant}/{name}"):
            with suppress(NotFound):
                return read_run(await self._cluster.get(path_to(*RUNS.gvr, namespace=tenant, name=name)))
            return None

    async def pods(self, request: CaptureRequest, selector: str | None) -> list[PodView]:
        """Read the pods again, as they are now; `selector` is that of the inventory."""
        async with _turn(self._checks, request.tenant, request.description):
            return await self._pods(request, selector)

    async def _workload(self, request: CaptureRequest) -> tuple[Object | None, str | None]:
        """Return the request's workload, reduced, and the label selector of the pods."""
        kind = request.workload
        if kind is None:
            return None, request.selector
        keep: Keep[tuple[Object | None, str | None]] = lambda workload: (reduced(workload), kind.pods(workload))  # noqa: E731
        return await self._read(kind, request.namespace, request.workload_name, keep) or (None, None)

    async def _pods(self, request: CaptureRequest, selector: str | None) -> list[PodView]:
        path = path_to(*_PODS, namespace=request.namespace)
        if request.pods and len(request.pods) <= FEW:
            named = await _read_each(
                request.pods, lambda name: self._read(LONE_POD, request.namespace, name, PodView.of)
            )
            return [pod for pod in named.values() if pod is not None]
        if request.pods:
            names = frozenset(request.pods)
            pods = await self._cluster.items(path, lambda pod: PodView.of(pod) if _name(pod) in names else None)
        else:
            pods = (
                await self._cluster.items(path, PodView.of, labels=selector, most=MAX_TARGETS + 1) if selector else []
            )
        if len(pods) > MAX_TARGETS:
            raise LookupRefused(too_many_targets(request))
        return pods

    async def _owners(self, pods: Iterable[PodView]) -> Mapping[ObjectReference, Object | None]:
        known: dict[ObjectReference, Object | None] = {}
        first = [pod.controller for pod in pods]
        while missing := missing_owners(first, known):
            kinds: defaultdict[tuple[WorkloadKind | None, str], list[ObjectReference]] = defaultdict(list)
            for reference in missing:
                kinds[workload_of(reference.kind, reference.api_version), reference.namespace].append(reference)
            for (kind, namespace), references in kinds.items():
                names = {reference.name for reference in references}
                owners = await self._owners_of_kind(kind, namespace, names) if kind else {}
                known.update((reference, owners.get(reference.name)) for reference in references)
        return known

    async def _owners_of_kind(
        self, kind: WorkloadKind, namespace: str, names: Collection[str]
    ) -> Mapping[str, Object | None]:
        """Read owners of one kind by name, reduced; those that may not be read are absent."""
        whole = kind in KINDS_WITH_POSITIONS
        try:
            if len(names) <= FEW:
                return await _read_each(
                    names, lambda name: self._read(kind, namespace, name, reduced, metadata_only=not whole)
                )
            for version in kind.versions:
                with suppress(NotFound):
                    owners = await self._cluster.items(
                        path_to(kind.group, version, kind.plural, namespace=namespace),
                        lambda owner: reduced(owner) if _name(owner) in names else None,
                        metadata_only=not whole,
                    )
                    return {_name(owner): owner for owner in owners}
        except RequestRejected as error:
            _log.warning("The owners of the pods cannot be read: %s", error)
        return {}

    async def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        with suppress(NotFound):
            body = await self._cluster.get(path_to("", "v1", "namespaces", name=namespace), metadata_only=True)
            return body["metadata"].get("labels") or {}
        return {}

    async def _nearby(self, request: CaptureRequest, workload: Object | None, pods: list[PodView]) -> tuple[str, ...]:
        """Return names of existing objects, for the message about one that does not exist."""
        kind = request.workload
        if kind is not None and workload is None:
            return await self._names(path_to(kind.group, kind.versions[0], kind.plural, namespace=request.namespace))
        if len(pods) < len(request.pods) or (request.selector is not None and not pods):
            return await self._names(path_to(*_PODS, namespace=request.namespace))
        return ()

    async def _names(self, path: str) -> tuple[str, ...]:
        """List the first names; empty if the kind is not installed or may not be read."""
        try:
            return tuple(await self._cluster.names(path, most=MAX_NEARBY))
        except (NotFound, RequestRejected):
            return ()

    async def _read(
        self, kind: WorkloadKind, namespace: str, name: str, keep: Keep[T], *, metadata_only: bool = False
    ) -> T | None:
        """Return `keep(object)` of the first version that has it; None if none has."""
        for version in kind.versions:
            with suppress(NotFound):
                path = path_to(kind.group, version, kind.plural, namespace=namespace, name=name)
                return keep(await self._cluster.get(path, metadata_only=metadata_only))
        return None


@asynccontextmanager
async def _turn(slots: FairSlots, tenant: str, description: str) -> AsyncIterator[None]:
    """Take a slot for one look-up, and bound its time."""
    async with slots.slot(tenant):
        try:
            async with asyncio.timeout(LOOKUP_S):
                yield
        except TimeoutError as error:
            raise Unavailable(f"{description}: the API server took longer than {LOOKUP_S:g} s") from error


async def _read_each(names: Collection[str], read: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Read objects by name, a few at a time."""
    limit = asyncio.Semaphore(_PARALLEL_READS)

    async def one(name: str) -> T:
        async with limit:
            return await read(name)

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
