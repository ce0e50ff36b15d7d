"""The walk up the owners of pods and workloads, by requests to the API server."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mldiagnostics_api.workloads.kinds import KINDS_WITH_POSITIONS, workload_of
from mldiagnostics_api.workloads.owners import missing_owners, owner_chain, reduced
from mldiagnostics_kube.client.apiserver import NotFound, RequestRejected, path_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from mldiagnostics_api.workloads.kinds import Object, WorkloadKind
    from mldiagnostics_api.workloads.owners import ObjectReference
    from mldiagnostics_kube.client.api_client import ApiClient

    T = TypeVar("T")
    Keep = Callable[[dict[str, Any]], T]

_log: Final = logging.getLogger(__name__)

FEW: Final = 20
"""Up to this number objects are read one by one; more are listed."""
_PARALLEL_READS: Final = 4
"""Reads of whole objects in one walk; an object takes up to 9 MiB."""


class Owners:
    """Reads workloads, and the owners of pods up to the topmost one.

    Owners are reduced to the fields that decisions need. Every method raises ClusterError; `of_pods` only if the API
    server does not answer.
    """

    def __init__(self, cluster: ApiClient) -> None:
        self._cluster = cluster

    async def read(
        self, kind: WorkloadKind, namespace: str, name: str, keep: Keep[T], *, metadata_only: bool = False
    ) -> T | None:
        """Return `keep(object)` of the first served version that has it; None if none has."""
        for version in kind.versions:
            with suppress(NotFound):
                path = path_to(kind.group, version, kind.plural, namespace=namespace, name=name)
                return keep(await self._cluster.get(path, metadata_only=metadata_only))
        return None

    async def chain(self, first: ObjectReference | None) -> tuple[Object, ...]:
        """Return the owners from a controller up to the topmost one, nearest first."""
        known: dict[ObjectReference, Object | None] = {}
        while missing := missing_owners([first], known):
            for reference in missing:
                kind = workload_of(reference.kind, reference.api_version)
                known[reference] = (
                    await self.read(kind, reference.namespace, reference.name, reduced, metadata_only=True)
                    if kind
                    else None
                )
        return owner_chain(first, known.get)

    async def of_pods(self, first: Iterable[ObjectReference | None]) -> Mapping[ObjectReference, Object | None]:
        """Return all owners of many pods by reference.

        They have the fields that give positions. An owner that does not exist or may not be read has the value None.

        Args:
            first: Controllers of the pods.
        """
        known: dict[ObjectReference, Object | None] = {}
        first = list(first)
        while missing := missing_owners(first, known):
            kinds: defaultdict[tuple[WorkloadKind | None, str], list[ObjectReference]] = defaultdict(list)
            for reference in missing:
                kinds[workload_of(reference.kind, reference.api_version), reference.namespace].append(reference)
            for (kind, namespace), references in kinds.items():
                names = {reference.name for reference in references}
                owners = await self._of_kind(kind, namespace, names) if kind else {}
                known.update((reference, owners.get(reference.name)) for reference in references)
        return known

    async def _of_kind(self, kind: WorkloadKind, namespace: str, names: Collection[str]) -> Mapping[str, Object | None]:
        """Read owners of one kind by name; those that may not be read are absent."""
        whole = kind in KINDS_WITH_POSITIONS
        try:
            if len(names) <= FEW:
                return await read_each(
                    names, lambda name: self.read(kind, namespace, name, reduced, metadata_only=not whole)
                )
            for version in kind.versions:
                with suppress(NotFound):
                    owners = await self._cluster.items(
                        path_to(kind.group, version, kind.plural, namespace=namespace),
                        lambda owner: reduced(owner) if owner["metadata"]["name"] in names else None,
                        metadata_only=not whole,
                    )
                    return {str(owner["metadata"]["name"]): owner for owner in owners}
        except RequestRejected as error:
            _log.warning("The owners of the pods cannot be read: %(error)s", {"error": error})
        return {}


async def read_each(names: Collection[str], read: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Read objects by name, a few at a time."""
    limit = asyncio.Semaphore(_PARALLEL_READS)

    async def one(name: str) -> T:
        async with limit:
            return await read(name)

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
