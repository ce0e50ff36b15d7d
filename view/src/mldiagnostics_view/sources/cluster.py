"""Runs from the MLRuns of a cluster, followed with the rights of the user."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.runs import findings, sessions
from mldiagnostics.runs.session_rows import with_stored
from mldiagnostics_api.resources import RUNS, SCHEDULES
from mldiagnostics_api.runs.row import account_of, attempts_of, findings_of, run_row_of, sessions_of
from mldiagnostics_api.schedules.of_run import schedules_of
from mldiagnostics_kube.cache.informer import Backoff, Informer, NoInformerMetrics, Selection, SyncState
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.client.cluster import Cluster
from mldiagnostics_kube.installation.run_hosts import list_hosts
from typing_extensions import override

from mldiagnostics_view.captures.captures import NoCaptures
from mldiagnostics_view.captures.cluster_captures import ClusterCaptures
from mldiagnostics_view.limits import FIRST_LIST_S, MAX_RUNS, MAX_SCHEDULES
from mldiagnostics_view.sources.followed_runs import FollowedRuns
from mldiagnostics_view.sources.run_files import UserFiles
from mldiagnostics_view.sources.source import ListedSource, RunDetail, namespace_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs import RankRow, RunRow
    from mldiagnostics_api.schedules.of_run import ScheduleOfRun
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_view.captures.captures import Captures
    from mldiagnostics_view.sources.run_files import RunFiles
    from mldiagnostics_view.sources.source import ListedRun


_SHARED: Final = (
    "The page has --allowed-host: everybody who reaches it would capture with the rights of the user who started it."
)


class ClusterSource(ListedSource):
    """Runs from MLRuns; as `ListedSource` says.

    Args:
        client: Client with the rights of the user.
        scope: Namespace of the runs; None for all.
        place: The cluster and its namespaces, for people.
        files: Makes the files of runs readable.
        captures: Captures of the runs.
    """

    def __init__(
        self, client: ApiClient, *, scope: str | None, place: str, files: RunFiles, captures: Captures
    ) -> None:
        self._client, self._scope, self._place, self._files = client, scope, place, files
        self._captures = captures
        self._store = FollowedRuns()
        self._informer = Informer(
            RUNS.plural,
            [path_to(*RUNS.gvr, namespace=scope)],
            cluster=client,
            store=self._store,
            metrics=NoInformerMetrics(),
            backoff=Backoff(),
            selection=Selection(metadata_only=False),
        )
        self._started = asyncio.get_running_loop().time()
        self._following = asyncio.create_task(self._informer.run())

    @classmethod
    async def connect(cls, options: ClusterOptions, *, is_shared: bool = False) -> ClusterSource:
        """Return the source of a cluster.

        Args:
            options: The cluster.
            is_shared: Whether others than the user may reach the page: they must not act with the user's rights.

        Raises:
            ConfigurationError: There are no credentials.
        """
        cluster = await Cluster.open(options)
        client, named = cluster.client, cluster.description
        captures = NoCaptures(_SHARED) if is_shared else ClusterCaptures(client, cluster=named)
        files = UserFiles(client, cluster=named)
        return cls(client, scope=cluster.scope, place=f"{named}, {cluster.place}", files=files, captures=captures)

    @property
    @override
    def place(self) -> str:
        return self._place

    @property
    @override
    def problem(self) -> str:
        reasons = {
            SyncState.UNKNOWN: "the cluster does not respond; check your VPN and `kubectl get mlruns`",
            SyncState.BEHIND: "the connection to the cluster is lost; the list may be old",
            SyncState.ABSENT: "the cluster has no MLRuns; install the chart mldiagnostics-connection-operator",
            SyncState.FORBIDDEN: "you may not list MLRuns here; pass a namespace with -n, or ask for the right to it",
        }
        reason = reasons.get(self._informer.state, "")
        if not reason and self._store.left_out:
            reason = f"more than {MAX_RUNS} runs, and the others are left out; pass a namespace with -n"
        return f"{self._place}: {reason}" if reason else ""

    @property
    @override
    def captures(self) -> Captures:
        return self._captures

    @override
    def namespace(self, key: str) -> str:
        return namespace_in(key)

    @override
    async def rows(self) -> Sequence[ListedRun]:
        await self._wait_for_list()
        return sorted(self._store.listed.values(), key=lambda run: (-(run.row.created or 0.0), run.key))

    @override
    async def detail(self, key: str) -> RunDetail:
        body = await self._body(key)
        row = run_row_of(body)
        noted, profiles = findings_of(body), sessions_of(body)
        with suppress(MLDiagnosticsError):  # then the sessions of the MLRun are shown, without sizes
            if directory := await self._files.directory(row, may_copy=False):
                stored = await asyncio.to_thread(sessions, directory)
                profiles = with_stored(profiles, stored, directory=row.directory)
        return RunDetail(
            row=row,
            attempts=attempts_of(body, row),
            hosts=await self._hosts(body, row),
            sessions=profiles,
            findings=noted or await asyncio.to_thread(findings, profiles),
        )

    @override
    async def schedules(self, key: str) -> Sequence[ScheduleOfRun]:
        body = await self._body(key)
        path = path_to(*SCHEDULES.gvr, namespace=body["metadata"]["namespace"])
        try:
            bodies = await self._client.items(path, dict, most=MAX_SCHEDULES)
        except ClusterError:
            return ()  # the user may not list them, or an older chart is installed
        return await asyncio.to_thread(schedules_of, body, bodies)

    @override
    async def directory(self, key: str, *, may_copy: bool = True) -> str:
        return await self._files.directory(run_row_of(await self._body(key)), may_copy=may_copy)

    @override
    async def configs(self, key: str) -> Mapping[str, Any]:
        return run_row_of(await self._body(key)).configs

    @override
    async def account(self, key: str) -> Mapping[str, Any] | None:
        return account_of(await self._body(key))

    @override
    async def aclose(self) -> None:
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        await self._files.aclose()
        await self._client.aclose()

    async def _body(self, key: str) -> Mapping[str, Any]:
        await self._wait_for_list()
        return self._store.body(key)

    async def _hosts(self, body: Mapping[str, Any], row: RunRow) -> list[RankRow]:
        """Return the ranks from the pods; none if the user may not list pods."""
        try:
            return await list_hosts(self._client, body, row)
        except ClusterError:
            return []

    async def _wait_for_list(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._started + FIRST_LIST_S):
                await self._store.is_settled.wait()
