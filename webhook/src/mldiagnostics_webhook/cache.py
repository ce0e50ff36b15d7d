"""What the webhook knows of namespaces and owners: followed by watches, asked for when a pod is faster than they."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mldiagnostics_api.injection import Unknown
from mldiagnostics_api.owners import Reference, missing_owners, owner_chain
from mldiagnostics_api.service.apiserver import ClusterError, NotFound, Refused, path_to
from mldiagnostics_api.workloads import WORKLOADS, Workload, workload_of

from mldiagnostics_webhook.cluster import Cluster
from mldiagnostics_webhook.following import Following, Patience, State
from mldiagnostics_webhook.shelf import Object, Room, Shelf, cut
from mldiagnostics_webhook.telemetry import Telemetry

T = TypeVar("T")

LOOKUP_S: Final = 1.0
ROOM_BYTES: Final = 64 * 2**20
PARALLEL_LOOKUPS: Final = 32
PATIENCE: Final = Patience()
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# Groups of runs (CronJob) are known by their references alone, and pods are never read.
FOLLOWED: Final = tuple(kind for kind in WORKLOADS if not kind.groups and kind.kind != "Pod")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pod's run depends on besides the pod: its namespace's metadata, and its owners, nearest first."""

    namespace: Object
    owners: tuple[Object, ...] | Unknown


class Cache:
    """Namespaces, and the workloads of every kind that exists."""

    def __init__(
        self, cluster: Cluster, telemetry: Telemetry, *, room_bytes: int = ROOM_BYTES, patience: Patience = PATIENCE
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._asked: dict[str, asyncio.Task[Object | Unknown | None]] = {}
        self._turn = asyncio.Semaphore(PARALLEL_LOOKUPS)
        room = Room(room_bytes)

        def following(name: str, *paths: str) -> Following:
            return Following(name, paths, cluster=cluster, shelf=Shelf(room), telemetry=telemetry, patience=patience)

        self._namespaces = following("Namespace", path_to("", "v1", "namespaces"))
        self._kinds = {_key(kind): following(kind.kind, *_collections(kind)) for kind in FOLLOWED}

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
                await asyncio.gather(*self._asked.values())  # they end by their own deadlines

    async def surroundings(
        self, namespace: str, controller: Reference | None, *, within_s: float = LOOKUP_S
    ) -> Surroundings | Unknown:
        """Find the namespace of a pod and the owners from its controller upwards, all within one deadline."""
        within_s = min(within_s, LOOKUP_S)
        until_s = asyncio.get_running_loop().time() + within_s
        late = Unknown(f"the API server did not tell within {within_s:g} s")
        around = await _until(until_s, self._namespace(namespace), late)
        if isinstance(around, Unknown):
            return around
        return Surroundings(around, await _until(until_s, self._owners(controller), late))

    async def _owners(self, controller: Reference | None) -> tuple[Object, ...] | Unknown:
        known: dict[Reference, Object | None] = {}
        while missing := missing_owners((controller,), known, pods=False):
            for reference in missing:
                owner = await self._owner(reference)
                if isinstance(owner, Unknown):
                    return owner
                known[reference] = owner
        return owner_chain(controller, known.get, pods=False)

    async def _namespace(self, name: str) -> Object | Unknown:
        kept = self._namespaces.shelf.get("", name)
        if kept is not None:
            self._telemetry.looked_up("cache")
            return kept
        found = await self._ask(self._namespaces, None, name)
        return Unknown(f"the namespace {name} does not exist") if found is None else found

    async def _owner(self, reference: Reference) -> Object | Unknown | None:
        """Find an owner; the cache is believed if it has the uid that the reference names."""
        workload = workload_of(reference.kind, reference.api_version)
        following = self._kinds.get(_key(workload)) if workload else None
        if following is None:
            return None
        kept = following.shelf.get(reference.namespace, reference.name)
        if kept is not None and reference.uid in ("", kept["metadata"].get("uid")):
            self._telemetry.looked_up("cache")
            return kept
        return await self._ask(following, reference.namespace, reference.name)

    async def _ask(self, following: Following, namespace: str | None, name: str) -> Object | Unknown | None:
        """Ask the API server; whoever asks for the same meanwhile gets the same answer."""
        if following.state is State.FORBIDDEN:
            self._telemetry.looked_up("forbidden")
            return Unknown(f"the webhook may not read objects of kind {following.name}")
        if not all(_NAME.fullmatch(part) for part in (namespace or name, name)):
            self._telemetry.looked_up("nowhere")  # it would lead to another path
            return None
        path = following.path(namespace, name)
        if path not in self._asked:
            self._asked[path] = asyncio.create_task(self._answer(path))
            self._asked[path].add_done_callback(lambda _: self._asked.pop(path))
        return await asyncio.shield(self._asked[path])

    async def _answer(self, path: str) -> Object | Unknown | None:
        answer, found = await self._served(path)
        self._telemetry.looked_up(found)
        return answer

    async def _served(self, path: str) -> tuple[Object | Unknown | None, str]:
        """Ask in turn; gives the answer and where it was found. Ends within twice the time of a lookup."""
        try:
            async with asyncio.timeout(LOOKUP_S):
                await self._turn.acquire()
        except TimeoutError:
            return Unknown(f"{PARALLEL_LOOKUPS} other lookups are under way"), "failed"
        try:
            return cut(await self._cluster.metadata(path, timeout_s=LOOKUP_S)), "server"
        except NotFound:
            return None, "nowhere"
        except Refused as refused:
            return Unknown(str(refused)), "forbidden"
        except ClusterError as silent:
            return Unknown(str(silent)), "failed"
        finally:
            self._turn.release()


async def _until(until_s: float, work: Coroutine[Any, Any, T], late: Unknown) -> T | Unknown:
    """Await the work until this time of the loop's clock."""
    try:
        async with asyncio.timeout_at(until_s):
            return await work
    except TimeoutError:
        return late


def _key(kind: Workload) -> tuple[str, str]:
    return kind.group, kind.kind


def _collections(kind: Workload) -> list[str]:
    return [path_to(kind.group, version, kind.plural) for version in kind.versions]
