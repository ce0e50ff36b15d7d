"""Follows the objects of one kind: lists them, watches them, and comes back whenever either of that ends."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from mldiagnostics_kube.apiserver import NotFound, RequestRejected, Unavailable
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.object_store import ObjectStore, key_of

_log: Final = logging.getLogger(__name__)

_GONE: Final = 410


class SyncState(StrEnum):
    """How well the objects of a kind are known."""

    UNKNOWN = "unknown"
    """Not listed yet."""
    FOLLOWED = "followed"
    BEHIND = "behind"
    """Changes since some moment are not known, or even what there is: the API server cannot list it."""
    ABSENT = "absent"
    """The kind does not exist in this cluster."""
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses in seconds before the next attempt."""

    shortest_s: float = 0.5
    longest_s: float = 10.0
    absent_s: float = 20.0
    forbidden_s: float = 60.0


class InformerMetrics(Protocol):
    """What an informer reports of its kind."""

    def watch(self, kind: str, *, before: str, now: str) -> None:
        """Note that the watch has gone from one state to another."""

    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        """Note how many objects the store has, and how many changes found no room in it."""


class Informer:
    """One kind; `paths` are its collections in the versions that may be served, the preferred one first."""

    def __init__(
        self,
        name: str,
        paths: Sequence[str],
        *,
        cluster: ApiClient,
        shelf: ObjectStore,
        telemetry: InformerMetrics,
        patience: Backoff,
    ) -> None:
        self.name = name
        self.shelf = shelf
        self.state = SyncState.UNKNOWN
        self._paths = tuple(paths)
        self._path = self._paths[0]
        self._cluster = cluster
        self._telemetry = telemetry
        self._patience = patience
        self._version: str | None = None
        self._said = ""
        self._become(SyncState.UNKNOWN)

    @property
    def settled(self) -> bool:
        """Whether it is known which objects there are, or that they cannot be known."""
        return self.state is not SyncState.UNKNOWN

    def path(self, namespace: str | None, name: str) -> str:
        """Write the path of one object in the version that is served."""
        prefix, _, plural = self._path.rpartition("/")
        return f"{prefix}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{self._path}/{name}"

    async def run(self) -> None:
        """Follow until cancelled."""
        pause_s = self._patience.shortest_s
        loop = asyncio.get_running_loop()
        while True:
            begun_s = loop.time()
            try:
                await self._follow()
                next_s = 0.0
            except NotFound:
                self._forget(SyncState.ABSENT)
                next_s = self._patience.absent_s
            except RequestRejected as refused:
                self._say(refused)
                self._forget(SyncState.FORBIDDEN)
                next_s = self._patience.forbidden_s
            except Exception as broken:  # noqa: BLE001 - whatever it is, it is tried again, and other kinds go on
                self._interrupted(broken)
                next_s = 0.0
            if loop.time() - begun_s > self._patience.longest_s:
                pause_s = self._patience.shortest_s
            await asyncio.sleep(max(next_s, pause_s))
            pause_s = min(2 * pause_s, self._patience.longest_s)

    def _interrupted(self, broken: Exception) -> None:
        if isinstance(broken, Unavailable) and broken.status == _GONE:
            self._version = None
        else:
            self._say(broken)
        # A kind that the API server answers for but cannot read must not keep the replica from serving the others.
        if self.state is SyncState.FOLLOWED or (isinstance(broken, Unavailable) and broken.status):
            self._become(SyncState.BEHIND)

    async def _follow(self) -> None:
        """List unless it is known from where to go on, then watch until the API server ends it."""
        if self._version is None:
            self._version = await self._list()
        self._become(SyncState.FOLLOWED)
        async for event in self._cluster.watch_metadata(self._path, self._version):
            item = event["object"]
            if event["type"] == "ERROR":
                raise Unavailable(f"The watch of {self.name} ended: {item.get('message')}", status=item.get("code", 0))
            if event["type"] == "DELETED":
                self.shelf.remove(item)
            elif event["type"] != "BOOKMARK":
                self.shelf.put(item)
            self._version = item["metadata"]["resourceVersion"]
            self._telemetry.kept(self.name, objects=len(self.shelf), left_out=self.shelf.left_out)

    async def _list(self) -> str:
        """List the objects in the first version that is served; gives the list's resourceVersion."""
        for path in self._paths:
            seen: set[str] = set()
            version = ""
            try:
                async for items, version in self._cluster.metadata_pages(path):  # noqa: B007 - the last one counts
                    for item in items:
                        seen.add(key_of(item))
                        self.shelf.put(item)
            except NotFound:
                continue
            self.shelf.keep_only(seen)
            self._path = path
            return version
        raise NotFound(f"{self.name} is served in none of its versions")

    def _forget(self, state: SyncState) -> None:
        self._version = None
        self.shelf.keep_only(set())
        self._become(state)

    def _become(self, state: SyncState) -> None:
        if state is not self.state:
            _log.info("%s: %s", self.name, state)
        self._telemetry.watch(self.name, before=self.state, now=state)
        self._telemetry.kept(self.name, objects=len(self.shelf), left_out=self.shelf.left_out)
        self.state = state
        if state is SyncState.FOLLOWED:
            self._said = ""

    def _say(self, error: Exception) -> None:
        """Log a failure once, not at every attempt."""
        if str(error) != self._said:
            _log.warning("%s cannot be followed: %r", self.name, error)
            self._said = str(error)
