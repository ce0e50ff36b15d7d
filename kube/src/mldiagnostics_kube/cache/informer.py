"""An informer: list and watch of one kind, with a store of the objects."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar

from typing_extensions import override

from mldiagnostics_kube.cache.object_store import key_of
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, RequestRejected, Unavailable

_log: Final = logging.getLogger(__name__)

_GONE: Final = 410


class SyncState(StrEnum):
    """State of the copy that an informer keeps of one kind."""

    UNKNOWN = "unknown"
    """Not listed yet."""
    FOLLOWED = "followed"
    """Listed, and the watch is open."""
    BEHIND = "behind"
    """The watch or the list failed; the store may lack recent changes."""
    ABSENT = "absent"
    """The API server does not serve the kind."""
    FORBIDDEN = "forbidden"
    """The API server rejects the list or the watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses of an informer in seconds before its next attempt."""

    shortest_s: float = 0.5
    """After the first failure; it doubles with each further one."""
    longest_s: float = 10.0
    absent_s: float = 20.0
    """The longest while the kind does not exist."""
    forbidden_s: float = 60.0
    """The longest while the API server rejects the requests."""
    doubt_s: float = 15.0
    """Rejections after a success are temporary for so long: an API server that starts does not know its rules yet."""


class InformerMetrics(Protocol):
    """Metrics that an informer updates for its kind."""

    def watch(self, kind: str, *, before: str, now: str) -> None:
        """Record that the watch went from state `before` to state `now`."""

    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        """Record the number of objects in the store, and of changes it had no room for."""


class NoInformerMetrics(InformerMetrics):
    """Metrics that nobody reads: they record nothing."""

    @override
    def watch(self, kind: str, *, before: str, now: str) -> None:
        pass

    @override
    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        pass


class InformerStore(Protocol):
    """Storage of an informer's objects; it decides which parts to keep."""

    left_out: int
    """Changes for which there was no room."""

    def __len__(self) -> int:
        """Return the number of kept objects."""

    def put(self, item: Mapping[str, Any], /) -> None:
        """Store an object in place of its former version."""

    def remove(self, item: Mapping[str, Any], /) -> None:
        """Remove an object that was deleted or is not selected any more."""

    def keep_only(self, keys: set[str], /) -> None:
        """Remove all objects but those with these keys, see `object_store.key_of`."""


S = TypeVar("S", bound=InformerStore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects that an informer follows, and the parts that it requests."""

    labels: str = ""
    """Label selector; empty selects all."""
    fields: str = ""
    metadata_only: bool = True


class Informer(Generic[S]):
    """A copy of one kind's objects, updated by list and watch.

    Args:
        name: Name of the kind, for logs and metrics.
        paths: Paths of its collection, one per version that may be served, the preferred one first.
        cluster: Client of the API server.
        store: Store that the informer fills.
        metrics: Metrics to update.
        backoff: Pauses after failures.
        selection: Objects and parts to follow; the metadata of all of them by default.

    Example:
        informer = Informer("jobs", ["/apis/batch/v1/jobs"], cluster=client, store=store, metrics=m, backoff=Backoff())
        task = asyncio.create_task(informer.run())
        ...
        job = informer.store.get("ml", "trainer") if informer.state is SyncState.FOLLOWED else None
    """

    def __init__(
        self,
        name: str,
        paths: Sequence[str],
        *,
        cluster: ApiClient,
        store: S,
        metrics: InformerMetrics,
        backoff: Backoff,
        selection: Selection = Selection(),
    ) -> None:
        self.name = name
        self.store = store
        self.state = SyncState.UNKNOWN
        self._paths = tuple(paths)
        self._path = self._paths[0]
        self._cluster = cluster
        self._metrics = metrics
        self._backoff = backoff
        self._selection = selection
        self._version: str | None = None
        self._last_warning = ""
        self._rejected_since_s: float | None = None
        self._set_state(SyncState.UNKNOWN)

    @property
    def settled(self) -> bool:
        """Whether the first list succeeded, or failed for good (absent, forbidden)."""
        return self.state is not SyncState.UNKNOWN

    def path(self, namespace: str | None, name: str) -> str:
        """Return the path of one object in the version that is served."""
        prefix, _, plural = self._path.rpartition("/")
        return f"{prefix}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{self._path}/{name}"

    async def run(self) -> None:
        """List and watch until cancelled."""
        pause_s = self._backoff.shortest_s
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            longest_s = self._backoff.longest_s
            try:
                await self._list_and_watch()
            except NotFound:
                self._reject(SyncState.ABSENT, loop.time())
                longest_s = self._backoff.absent_s
            except RequestRejected as rejection:
                self._warn_once(rejection)
                self._reject(SyncState.FORBIDDEN, loop.time())
                longest_s = self._backoff.forbidden_s
            except Exception as failure:  # noqa: BLE001 - any failure is retried; the other kinds go on
                self._handle_failure(failure)
            if loop.time() - started_s > self._backoff.longest_s:
                pause_s = self._backoff.shortest_s
            await asyncio.sleep(min(pause_s, longest_s))
            pause_s = min(2 * pause_s, longest_s)

    def _reject(self, state: SyncState, now_s: float) -> None:
        """Drop the objects, unless a rejection after a success may be temporary."""
        if self._rejected_since_s is None:
            self._rejected_since_s = now_s
        known = self.state in (SyncState.FOLLOWED, SyncState.BEHIND)
        if known and now_s - self._rejected_since_s < self._backoff.doubt_s:
            self._set_state(SyncState.BEHIND)
        else:
            self._clear(state)

    def _handle_failure(self, failure: Exception) -> None:
        if isinstance(failure, Unavailable) and failure.status == _GONE:
            self._version = None
        else:
            self._warn_once(failure)
        # A kind that the API server cannot list must not keep the replica from serving the other kinds.
        if self.state is SyncState.FOLLOWED or (isinstance(failure, Unavailable) and failure.status):
            self._set_state(SyncState.BEHIND)

    async def _list_and_watch(self) -> None:
        """List if there is no version to resume from, then watch until the watch ends."""
        if self._version is None:
            self._version = await self._list()
            self._rejected_since_s = None
        self._set_state(SyncState.FOLLOWED)
        chosen = self._selection
        watch = self._cluster.watch(
            self._path,
            self._version,
            labels=chosen.labels,
            fields=chosen.fields,
            metadata_only=chosen.metadata_only,
        )
        async for event in watch:
            self._rejected_since_s = None
            item = event["object"]
            if event["type"] == "ERROR":
                raise Unavailable(f"watch {self.name}: {item.get('message')}", status=item.get("code", 0))
            if event["type"] == "DELETED":
                self._store(self.store.remove, item)
            elif event["type"] != "BOOKMARK":
                self._store(self.store.put, item)
            self._version = item["metadata"]["resourceVersion"]
            self._metrics.kept(self.name, objects=len(self.store), left_out=self.store.left_out)

    async def _list(self) -> str:
        """List the objects in the first version that is served; return the list's version."""
        chosen = self._selection
        for path in self._paths:
            seen: set[str] = set()
            version = ""
            pages = self._cluster.pages(
                path, labels=chosen.labels, fields=chosen.fields, metadata_only=chosen.metadata_only
            )
            try:
                async for items, version in pages:  # noqa: B007 - the last one counts
                    for item in items:
                        seen.add(key_of(item))
                        self._store(self.store.put, item)
            except NotFound:
                continue
            self.store.keep_only(seen)
            self._path = path
            return version
        raise NotFound(f"{self.name}: the API server serves none of the versions")

    def _store(self, change: Callable[[Mapping[str, Any]], None], item: Mapping[str, Any]) -> None:
        """Pass an object to the store; skip and log it if the store fails."""
        try:
            change(item)
        except Exception:  # noqa: BLE001 - one object must not stop the others of its kind
            _log.exception("%(resource)s: skipped %(object)s", {"resource": self.name, "object": key_of(item)})

    def _clear(self, state: SyncState) -> None:
        self._version = None
        self.store.keep_only(set())
        self._set_state(state)

    def _set_state(self, state: SyncState) -> None:
        if state is not self.state:
            _log.info("%(resource)s: %(state)s", {"resource": self.name, "state": state})
        self._metrics.watch(self.name, before=self.state, now=state)
        self._metrics.kept(self.name, objects=len(self.store), left_out=self.store.left_out)
        self.state = state
        if state is SyncState.FOLLOWED:
            self._last_warning = ""

    def _warn_once(self, error: Exception) -> None:
        """Log a failure once, not at every attempt."""
        if str(error) != self._last_warning:
            _log.warning("%(resource)s: cannot list or watch: %(error)r", {"resource": self.name, "error": error})
            self._last_warning = str(error)
