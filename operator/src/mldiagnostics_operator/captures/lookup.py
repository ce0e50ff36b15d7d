"""Read the inputs of a plan from the cluster: pods, their owners, the workload."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mldiagnostics_api.captures.not_found import MAX_NEARBY, too_many_targets
from mldiagnostics_api.captures.planner import PodInventory
from mldiagnostics_api.captures.targets import MAX_TARGETS
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.v1alpha1 import read_run
from mldiagnostics_api.workloads.kinds import LONE_POD
from mldiagnostics_api.workloads.owners import reduced
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_kube.client.apiserver import NotFound, RequestRejected, Unavailable, path_to

from mldiagnostics_operator.fair_slots import FairSlots
from mldiagnostics_operator.owners import FEW, Owners, read_each

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mldiagnostics_api.captures.refusal import CaptureRefusal
    from mldiagnostics_api.captures.request import CaptureRequest
    from mldiagnostics_api.v1alpha1 import MLRunObject
    from mldiagnostics_api.workloads.kinds import Object
    from mldiagnostics_kube.client.api_client import ApiClient

    T = TypeVar("T")
    Keep = Callable[[dict[str, Any]], T]

_log: Final = logging.getLogger(__name__)

_PARALLEL: Final = 8
_PER_NAMESPACE: Final = 2
"""A namespace with large or many pods leaves the other look-ups to the other namespaces."""
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
        self._owners = Owners(cluster)
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
                owners=await self._owners.of_pods(pod.controller for pod in pods),
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
        return await self._owners.read(kind, request.namespace, request.workload_name, keep) or (None, None)

    async def _pods(self, request: CaptureRequest, selector: str | None) -> list[PodView]:
        path = path_to(*_PODS, namespace=request.namespace)
        if request.pods and len(request.pods) <= FEW:
            named = await read_each(
                request.pods, lambda name: self._owners.read(LONE_POD, request.namespace, name, PodView.of)
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


@asynccontextmanager
async def _turn(slots: FairSlots, tenant: str, description: str) -> AsyncIterator[None]:
    """Take a slot for one look-up, and bound its time."""
    async with slots.slot(tenant):
        try:
            async with asyncio.timeout(LOOKUP_S):
                yield
        except TimeoutError as error:
            raise Unavailable(f"{description}: the API server took longer than {LOOKUP_S:g} s") from error


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
