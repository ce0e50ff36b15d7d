"""What the webhook knows of namespaces and owners: followed by watches, asked for when a pod is faster than they."""

import asyncio
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.owners import ObjectReference, owner_chain
from mldiagnostics_api.workloads import WORKLOADS, WorkloadKind
from mldiagnostics_kube.apiserver import ClusterError, NotFound, RequestRejected, path_to
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.informer import Backoff, Informer, SyncState
from mldiagnostics_kube.object_store import MemoryBudget, Object, ObjectStore, cut

from mldiagnostics_webhook.telemetry import WebhookMetrics

LOOKUP_S: Final = 1.0
ROOM_BYTES: Final = 64 * 2**20
PARALLEL_LOOKUPS: Final = 32
PATIENCE: Final = Backoff()
_WALKS: Final = 1024
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# Groups of runs (CronJob) are known by their references alone, and pods are never read.
FOLLOWED: Final = tuple(kind for kind in WORKLOADS if not kind.groups and kind.kind != "Pod")


@dataclass(frozen=True, slots=True)
class CacheHit:
    """What a shelf showed at a place."""

    shelf: ObjectStore
    namespace: str
    name: str
    shown: Object

    def holds(self) -> bool:
        """Whether the shelf still shows that very object."""
        return self.shelf.get(self.namespace, self.name) is self.shown


@dataclass(frozen=True, slots=True, eq=False)
class OwnerContext:
    """What a pod's run depends on besides the pod: its namespace's metadata, and its owners, nearest first."""

    namespace: Object
    owners: tuple[Object, ...] | OwnersUnknown
    sights: tuple[CacheHit, ...]
    """All of it that came from the cache; empty if something had to be asked for."""

    def hold(self) -> bool:
        """Whether the cache shows the same again."""
        return bool(self.sights) and all(sight.holds() for sight in self.sights)


class MetadataCache:
    """Namespaces, and the workloads of every kind that exists."""

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: WebhookMetrics,
        *,
        room_bytes: int = ROOM_BYTES,
        patience: Backoff = PATIENCE,
        lookup_s: float = LOOKUP_S,
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._lookup_s = lookup_s
        self._asked: dict[str, asyncio.Task[Object | OwnersUnknown | None]] = {}
        self._turn = asyncio.Semaphore(PARALLEL_LOOKUPS)
        self._walked: dict[ObjectReference, OwnerContext] = {}
        room = MemoryBudget(room_bytes)

        def following(name: str, *paths: str) -> Informer:
            return Informer(name, paths, cluster=cluster, store=ObjectStore(room), metrics=telemetry, backoff=patience)

        self._namespaces = following("Namespace", path_to("", "v1", "namespaces"))
        self._kinds = {(kind.group, kind.kind): following(kind.kind, *_collections(kind)) for kind in FOLLOWED}

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed, or is known to be absent or forbidden."""
        return self._namespaces.settled and all(kind.settled for kind in self._kinds.values())

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow everything while the block runs."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(kind.run()) for kind in (self._namespaces, *self._kinds.values())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*self._asked.values(), return_exceptions=True)  # they end by their own deadlines

    async def surroundings(
        self, namespace: str, controller: ObjectReference | None, *, within_s: float = math.inf
    ) -> OwnerContext | OwnersUnknown:
        """Find the namespace of a pod and the owners from its controller upwards, all within one deadline.

        While the cache shows the same to the same controller's pods, they are given the same object.
        """
        before = self._walked.get(controller) if controller else None
        if before and before.hold():
            self._telemetry.looked_up("cache", len(before.sights))
            return before
        until_s = asyncio.get_running_loop().time() + min(within_s, self._lookup_s)
        around = await self._around(namespace, controller, until_s)
        if controller and isinstance(around, OwnerContext) and around.sights:
            if len(self._walked) >= _WALKS:
                self._walked.pop(next(iter(self._walked)))
            self._walked[controller] = around
        return around

    async def _around(
        self, namespace: str, controller: ObjectReference | None, until_s: float
    ) -> OwnerContext | OwnersUnknown:
        """Walk up through the cache; whenever something is not there, ask for it and walk again."""
        sights: list[CacheHit] = []
        asked: dict[ObjectReference, Object | None] = {}
        missing: list[ObjectReference] = []

        def lookup(reference: ObjectReference) -> Object | None:
            if reference in asked:
                return asked[reference]
            sight = self._sight(self._kinds[_kind(reference)], reference.namespace, reference.name)
            # The cache is believed if it has the uid that the reference names.
            if sight is None or reference.uid not in ("", sight.shown["metadata"].get("uid")):
                missing.append(reference)
                return None
            sights.append(sight)
            return sight.shown

        sight = self._sight(self._namespaces, "", namespace)
        space = sight.shown if sight else await self._ask(self._namespaces, None, namespace, until_s)
        if isinstance(space, OwnersUnknown):
            return space
        if space is None:
            return OwnersUnknown(f"the namespace {namespace} does not exist")
        while True:
            sights[:] = [sight] if sight else []
            chain = owner_chain(controller, lookup, pods=False)
            if not missing:
                self._telemetry.looked_up("cache", len(sights))
                return OwnerContext(space, chain, tuple(sights) if sight and not asked else ())
            reference = missing.pop()
            owner = await self._ask(self._kinds[_kind(reference)], reference.namespace, reference.name, until_s)
            if isinstance(owner, OwnersUnknown):
                self._telemetry.looked_up("cache", len(sights))
                return OwnerContext(space, owner, ())
            asked[reference] = owner

    @staticmethod
    def _sight(following: Informer, namespace: str, name: str) -> CacheHit | None:
        shown = following.store.get(namespace, name)
        return None if shown is None else CacheHit(following.store, namespace, name, shown)

    async def _ask(
        self, following: Informer, namespace: str | None, name: str, until_s: float
    ) -> Object | OwnersUnknown | None:
        """Ask the API server until a moment of the loop's clock; who asks for the same meanwhile gets the same."""
        if following.state is SyncState.FORBIDDEN:
            self._telemetry.looked_up("forbidden")
            return OwnersUnknown(f"the webhook may not read objects of kind {following.name}")
        if not all(_NAME.fullmatch(part) for part in (namespace or name, name)):
            self._telemetry.looked_up("nowhere")  # it would lead to another path
            return None
        path = following.path(namespace, name)
        if path not in self._asked:
            self._asked[path] = asyncio.create_task(self._answer(path))
            self._asked[path].add_done_callback(lambda _: self._asked.pop(path))
        try:
            async with asyncio.timeout_at(until_s):
                return await asyncio.shield(self._asked[path])
        except TimeoutError:
            return OwnersUnknown("the API server did not tell in time")

    async def _answer(self, path: str) -> Object | OwnersUnknown | None:
        answer, found = await self._served(path)
        self._telemetry.looked_up(found)
        return answer

    async def _served(self, path: str) -> tuple[Object | OwnersUnknown | None, str]:
        """Ask in turn; gives the answer and where it was found. Ends within twice the time of a lookup."""
        try:
            async with asyncio.timeout(self._lookup_s):
                await self._turn.acquire()
        except TimeoutError:
            return OwnersUnknown(f"{PARALLEL_LOOKUPS} other lookups are under way"), "failed"
        try:
            return cut(await self._cluster.get(path, metadata_only=True, timeout_s=self._lookup_s)), "server"
        except NotFound:
            return None, "nowhere"
        except RequestRejected as refused:
            return OwnersUnknown(str(refused)), "forbidden"
        except ClusterError as silent:
            return OwnersUnknown(str(silent)), "failed"
        finally:
            self._turn.release()


def _kind(reference: ObjectReference) -> tuple[str, str]:
    """Give group and kind; the version does not matter."""
    group, slash, _ = reference.api_version.partition("/")
    return group if slash else "", reference.kind


def _collections(kind: WorkloadKind) -> list[str]:
    return [path_to(kind.group, version, kind.plural) for version in kind.versions]
