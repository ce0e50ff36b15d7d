"""Cache of namespaces and owners: kept current by watches, completed by requests."""

import asyncio
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.workloads.kinds import WORKLOADS, WorkloadKind
from mldiagnostics_api.workloads.owners import ObjectReference, owner_chain
from mldiagnostics_kube.cache.informer import Backoff, Informer, SyncState
from mldiagnostics_kube.cache.object_store import MemoryBudget, Object, ObjectStore, cut
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, RequestRejected, path_to
from mldiagnostics_kube.process.background import running

from mldiagnostics_webhook.limits import CACHE_BYTES, CONTEXTS, MAX_LOOKUPS
from mldiagnostics_webhook.telemetry import WebhookMetrics

LOOKUP_S: Final = 1.0
PARALLEL_LOOKUPS: Final = 32
BACKOFF: Final = Backoff()
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# Groups of runs (CronJob) are identified by owner references alone, and pods are never read.
WATCHED_KINDS: Final = tuple(kind for kind in WORKLOADS if not kind.groups and kind.kind != "Pod")


@dataclass(frozen=True, slots=True)
class CacheHit:
    """An object that a store returned for a namespace and name."""

    store: ObjectStore
    namespace: str
    name: str
    item: Object

    def is_current(self) -> bool:
        """Return whether the store still has this very object."""
        return self.store.get(self.namespace, self.name) is self.item


@dataclass(frozen=True, slots=True, eq=False)
class OwnerContext:
    """Namespace and owners (nearest first) of a pod, as input of a decision."""

    namespace: Object
    owners: tuple[Object, ...] | OwnersUnknown
    hits: tuple[CacheHit, ...]
    """The cache entries of all of it; empty if a part was requested from the API server or is not kept parsed."""

    def is_current(self) -> bool:
        """Return whether the cache still has the same entries."""
        return bool(self.hits) and all(hit.is_current() for hit in self.hits)


class MetadataCache:
    """Metadata of namespaces and of workloads of every kind that the cluster serves."""

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: WebhookMetrics,
        *,
        budget_bytes: int = CACHE_BYTES,
        backoff: Backoff = BACKOFF,
        lookup_s: float = LOOKUP_S,
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._lookup_s = lookup_s
        self._requests: dict[str, asyncio.Task[Object | OwnersUnknown | None]] = {}
        self._slots = asyncio.Semaphore(PARALLEL_LOOKUPS)
        self._contexts: dict[ObjectReference, OwnerContext] = {}
        budget = MemoryBudget(budget_bytes)

        def informer(name: str, *paths: str) -> Informer[ObjectStore]:
            return Informer(name, paths, cluster=cluster, store=ObjectStore(budget), metrics=telemetry, backoff=backoff)

        self._namespaces = informer("Namespace", path_to("", "v1", "namespaces"))
        self._kinds = {(kind.group, kind.kind): informer(kind.kind, *_collections(kind)) for kind in WATCHED_KINDS}

    @property
    def synced(self) -> bool:
        """Whether every kind is listed, absent or forbidden."""
        return self._namespaces.settled and all(kind.settled for kind in self._kinds.values())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all informers while the block runs."""
        try:
            async with running(*(kind.run() for kind in (self._namespaces, *self._kinds.values()))):
                yield
        finally:
            await asyncio.gather(*self._requests.values(), return_exceptions=True)  # each has a deadline

    def known_context(self, controller: ObjectReference | None) -> OwnerContext | None:
        """Return the namespace and the owners of a pod if no lookup is necessary."""
        cached = self._contexts.get(controller) if controller else None
        if cached is None or not cached.is_current():
            return None
        self._telemetry.looked_up("cache", len(cached.hits))
        return cached

    async def owner_context(
        self, namespace: str, controller: ObjectReference | None, *, within_s: float = math.inf
    ) -> OwnerContext | OwnersUnknown:
        """Return the namespace and the owners of a pod, within one deadline.

        While the cache is unchanged, all pods of a controller get the same object.

        Args:
            namespace: Namespace of the pod.
            controller: Nearest owner of the pod, if it has one.
            within_s: Longest wait in seconds; the cache's own bound applies too.
        """
        if cached := self.known_context(controller):
            return cached
        until_s = asyncio.get_running_loop().time() + min(within_s, self._lookup_s)
        context = await self._resolve(namespace, controller, until_s)
        if controller and isinstance(context, OwnerContext) and context.hits:
            if len(self._contexts) >= CONTEXTS:
                self._contexts.pop(next(iter(self._contexts)))
            self._contexts[controller] = context
        return context

    async def _resolve(
        self, namespace: str, controller: ObjectReference | None, until_s: float
    ) -> OwnerContext | OwnersUnknown:
        """Walk up through the cache; request each missing owner and walk again."""
        hits: list[CacheHit] = []
        requested: dict[ObjectReference, Object | None] = {}
        missing: list[ObjectReference] = []

        def lookup(reference: ObjectReference) -> Object | None:
            if reference in requested:
                return requested[reference]
            hit = self._cached(self._kinds[_kind(reference)], reference.namespace, reference.name)
            # Another uid: the cached object is an older or newer one of the same name.
            if hit is None or reference.uid not in ("", hit.item["metadata"].get("uid")):
                missing.append(reference)
                return None
            hits.append(hit)
            return hit.item

        hit = self._cached(self._namespaces, "", namespace)
        item = hit.item if hit else await self._request(self._namespaces, None, namespace, until_s)
        if isinstance(item, OwnersUnknown):
            return item
        if item is None:
            return OwnersUnknown(f"the namespace {namespace} does not exist")
        while True:
            hits[:] = [hit] if hit else []
            chain = owner_chain(controller, lookup, pods=False)
            if not missing:
                self._telemetry.looked_up("cache", len(hits))
                reusable = hit and not requested and all(each.is_current() for each in hits)
                return OwnerContext(item, chain, tuple(hits) if reusable else ())
            reference = missing.pop()
            owner = await self._request(self._kinds[_kind(reference)], reference.namespace, reference.name, until_s)
            if isinstance(owner, OwnersUnknown):
                self._telemetry.looked_up("cache", len(hits))
                return OwnerContext(item, owner, ())
            requested[reference] = owner

    @staticmethod
    def _cached(informer: Informer[ObjectStore], namespace: str, name: str) -> CacheHit | None:
        item = informer.store.get(namespace, name)
        return None if item is None else CacheHit(informer.store, namespace, name, item)

    async def _request(
        self, informer: Informer[ObjectStore], namespace: str | None, name: str, until_s: float
    ) -> Object | OwnersUnknown | None:
        """Read an object from the API server; concurrent reads share one request."""
        if informer.state is SyncState.FORBIDDEN:
            self._telemetry.looked_up("forbidden")
            return OwnersUnknown(f"the webhook may not read objects of kind {informer.name}")
        if not all(_NAME.fullmatch(part) for part in (namespace or name, name)):
            self._telemetry.looked_up("nowhere")  # such a name would change the path
            return None
        path = informer.path(namespace, name)
        if path not in self._requests:
            if len(self._requests) >= MAX_LOOKUPS:
                self._telemetry.looked_up("failed")
                return OwnersUnknown(f"{MAX_LOOKUPS} other lookups are in progress")
            self._requests[path] = asyncio.create_task(self._counted(path))
            self._requests[path].add_done_callback(lambda _: self._requests.pop(path))
        try:
            async with asyncio.timeout_at(until_s):
                return await asyncio.shield(self._requests[path])
        except TimeoutError:
            return OwnersUnknown("the API server did not answer in time")

    async def _counted(self, path: str) -> Object | OwnersUnknown | None:
        result, outcome = await self._fetch(path)
        self._telemetry.looked_up(outcome)
        return result

    async def _fetch(self, path: str) -> tuple[Object | OwnersUnknown | None, str]:
        """Read an object within twice `lookup_s`; return it and the outcome to count."""
        try:
            async with asyncio.timeout(self._lookup_s):
                await self._slots.acquire()
        except TimeoutError:
            return OwnersUnknown(f"{PARALLEL_LOOKUPS} other lookups are in progress"), "failed"
        try:
            return cut(await self._cluster.get(path, metadata_only=True, timeout_s=self._lookup_s)), "server"
        except NotFound:
            return None, "nowhere"
        except RequestRejected as error:
            return OwnersUnknown(str(error)), "forbidden"
        except ClusterError as error:
            return OwnersUnknown(str(error)), "failed"
        finally:
            self._slots.release()


def _kind(reference: ObjectReference) -> tuple[str, str]:
    """Return group and kind; the version does not matter."""
    group, slash, _ = reference.api_version.partition("/")
    return group if slash else "", reference.kind


def _collections(kind: WorkloadKind) -> list[str]:
    return [path_to(kind.group, version, kind.plural) for version in kind.versions]
