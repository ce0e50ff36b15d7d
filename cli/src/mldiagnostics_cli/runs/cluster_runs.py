"""Runs from the MLRuns of a cluster, with the rights of the user."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.locations import is_bucket, is_on_volume
from mldiagnostics.runs import series, with_goodput
from mldiagnostics.runs.reference import NamedRun, meant_runs
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.row import (
    attempts_of,
    chosen_description,
    last_metrics_of,
    reported_tags,
    run_row_of,
    sessions_of,
)
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.installation.run_hosts import list_hosts
from typing_extensions import override

from mldiagnostics_cli.cluster.objects import ObjectName
from mldiagnostics_cli.runs.cluster_files import fetched_run, fetched_session, stored_sessions
from mldiagnostics_cli.runs.file_runs import PLOT_POINTS
from mldiagnostics_cli.runs.source import DeletableRun, RunSource
from mldiagnostics_cli.sources import is_workload, several

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mldiagnostics.runs import AttemptRow, MetricSeries, RankRow, RunRow, SessionRow
    from mldiagnostics.runs.run_filter import RunFilter
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.client.cluster import Cluster
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.runs.run_edit import RunEdit

    Body = dict[str, Any]


T = TypeVar("T")

_TRIES = 5
"""Of a change of an MLRun, whose operator changes it too."""


async def find_run_object(cluster: Cluster, run: str, *, shortest_prefix: int = 1) -> Body:
    """Return the MLRun that a user means.

    Args:
        cluster: The cluster.
        run: Name of the MLRun, id of the run or its beginning, name of the run or of its workload, or KIND/NAME of the
            workload.
        shortest_prefix: Characters that the beginning of an id has at least.

    Raises:
        ConfigurationError: No run or several runs are meant.
        ClusterError: The MLRuns cannot be read.
    """
    if is_workload(run):
        run = ObjectName.parse(run).text
    elif cluster.scope is not None and run:
        try:
            return await cluster.client.get(path_to(*RUNS.gvr, namespace=cluster.scope, name=run))
        except NotFound:
            pass
    bodies = await cluster.client.items(path_to(*RUNS.gvr, namespace=cluster.scope), dict)
    found = _meant(bodies, run, shortest_prefix)
    if not found:
        raise ConfigurationError(
            f"{run}: no run in {cluster.place} has this name, or an id that starts so; `mldiag runs list -A` shows the "
            "runs of all namespaces"
        )
    if len(found) > 1:
        raise several(run, cluster.place, [_object_name(each) for each in found], "pass one of these names")
    return found[0]


@contextmanager
def open_cluster_runs(options: ClusterOptions) -> Iterator[ClusterRuns]:
    """Connect to the cluster while the block runs."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        cluster = runner.run(stack.enter_async_context(connect(options)))
        try:
            yield ClusterRuns(cluster, runner)
        finally:
            runner.run(stack.aclose())


class ClusterRuns(RunSource):
    """MLRuns as rows; as `RunSource` says."""

    def __init__(self, cluster: Cluster, runner: asyncio.Runner) -> None:
        self._cluster, self._runner = cluster, runner
        self._bodies: dict[tuple[str, str], Body] = {}

    @property
    @override
    def place(self) -> str:
        return f"{self._cluster.place} of {self._cluster.description}"

    @override
    def rows(self, wanted: RunFilter) -> list[RunRow]:
        bodies = self._wait(self._cluster.client.items(path_to(*RUNS.gvr, namespace=self._cluster.scope), dict))
        return wanted.newest(map(self._row, bodies))

    @override
    def find(self, run: str, *, shortest_prefix: int = 1) -> RunRow:
        return self._row(self._wait(find_run_object(self._cluster, run, shortest_prefix=shortest_prefix)))

    @override
    def again(self, row: RunRow) -> RunRow:
        return self._row(self._wait(self._cluster.client.get(self._path(row))))

    @override
    def attempts(self, row: RunRow) -> list[AttemptRow]:
        return attempts_of(self._body(row), row)

    @override
    def sessions(self, row: RunRow, *, with_files: bool = False) -> list[SessionRow]:
        known = sessions_of(self._body(row))
        return stored_sessions(row, known) if with_files else known

    @override
    def fetched(self, row: RunRow) -> AbstractContextManager[RunRow]:
        return fetched_run(self._cluster, self._wait, row)

    @override
    def fetched_session(self, session: SessionRow) -> AbstractContextManager[SessionRow]:
        of_runs = (body for body in self._bodies.values() if any(each.url == session.url for each in sessions_of(body)))
        body = next(of_runs, None)
        namespace = body["metadata"]["namespace"] if body else self._cluster.namespace
        return fetched_session(self._cluster, self._wait, session, namespace)

    @override
    def hosts(self, row: RunRow) -> list[RankRow]:
        return self._wait(list_hosts(self._cluster.client, self._body(row), row))

    @override
    def curves(self, row: RunRow, metrics: Sequence[str] | None, *, rank: int) -> list[MetricSeries]:
        if not row.directory or is_on_volume(row.directory):
            return []
        return series(row, metrics, rank=rank, points=PLOT_POINTS)

    @override
    def last_metrics(self, row: RunRow) -> Mapping[str, float]:
        return last_metrics_of(self._body(row))

    @override
    def accounted(self, rows: Sequence[RunRow]) -> list[RunRow]:
        if len(rows) > 1:
            return list(rows)
        # A run with a moment of the account has the one of the operator, which every other place shows too.
        try:
            return [
                with_goodput(row) if row.goodput_as_of is None and is_bucket(row.directory) else row for row in rows
            ]
        except MLDiagnosticsError:  # `mldiag goodput` says why
            return list(rows)

    @override
    def edited(self, row: RunRow, edit: RunEdit) -> RunRow:
        self._wait(_edit(self._cluster.client, self._path(row), row, edit))
        return self.again(row)

    @override
    def deletable(self, row: RunRow) -> DeletableRun:
        uid = self._body(row)["metadata"]["uid"]

        def delete() -> None:
            self._wait(self._cluster.client.delete(self._path(row), uid=uid))

        return DeletableRun(row, delete)

    def _row(self, body: Body) -> RunRow:
        row = run_row_of(body)
        self._bodies[row.namespace, row.run_id] = body
        return row

    def _body(self, row: RunRow) -> Body:
        return self._bodies[row.namespace, row.run_id]

    def _path(self, row: RunRow) -> str:
        return path_to(*RUNS.gvr, namespace=row.namespace, name=_object_name(self._body(row)))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(work)
        except ClusterError as error:
            raise self._cluster.failure(error) from error


async def _edit(client: ApiClient, path: str, row: RunRow, edit: RunEdit) -> None:
    """Patch the spec of an MLRun, again if it has changed meanwhile."""
    for left in reversed(range(_TRIES)):
        body = await client.get(path)
        words = edit.apply(row, chosen_description(body), own_tags=reported_tags(body))
        tags = None if words.tags is None else list(words.tags)
        spec = {"displayName": words.name, "tags": tags, "notes": words.notes}
        version = {"resourceVersion": body["metadata"]["resourceVersion"]}
        try:
            await client.patch(path, {"metadata": version, "spec": spec})
        except Conflict:
            if not left:
                raise
        else:
            return


def _meant(bodies: Sequence[Body], run: str, shortest_prefix: int) -> list[Body]:
    """Return the runs that a word can mean."""
    # The object of a run that pods reported does not count beside that of their workload.
    ordered = sorted(bodies, key=lambda body: "workloadRef" in (body.get("spec") or {}))
    rows = {(row.namespace, row.run_id): (row, body) for body in ordered for row in [run_row_of(body)]}
    current = _current([row for row, _ in rows.values()])
    named = [(_named(body, row, is_current=row in current), body) for row, body in rows.values()]
    found = meant_runs(run, [each for each, _ in named], shortest_prefix=shortest_prefix)
    return [body for each, body in named if each in found]


def _current(rows: Sequence[RunRow]) -> list[RunRow]:
    """Return the current run of each workload: the one that goes on, else the newest.

    A workload may have been made again.
    """
    current: dict[tuple[str, object], RunRow] = {}
    for row in sorted(rows, key=lambda row: (row.phase not in FINAL, row.created or 0.0)):
        workload = row.workload or {}
        current[row.namespace, (workload.get("kind"), workload.get("name")) if workload else row.run_id] = row
    return list(current.values())


def _named(body: Body, row: RunRow, *, is_current: bool) -> NamedRun:
    """Return the words that mean a run.

    Only a current one has the name of its workload.
    """
    names = {row.name, *_workload_names(row)} if is_current else set[str]()
    aliases = (body.get("status") or {}).get("aliases") or ()
    return NamedRun(row.run_id, frozenset(names.union(aliases)), _object_name(body))


def _workload_names(row: RunRow) -> tuple[str, str]:
    workload = row.workload or {}
    name = str(workload.get("name") or "")
    return name, f"{str(workload.get('kind') or '').lower()}/{name}"


def _object_name(body: Body) -> str:
    return str(body["metadata"]["name"])
