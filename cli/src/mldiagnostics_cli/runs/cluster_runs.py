"""Runs from the MLRuns of a cluster, with the rights of the user."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.runs import goodput, series
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.pods import PodView
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_hosts import hosts_of
from mldiagnostics_api.run_names import run_label
from mldiagnostics_api.run_row import attempts_of, run_row_of, sessions_of
from mldiagnostics_kube.apiserver import ClusterError, NotFound, path_to
from typing_extensions import override

from mldiagnostics_cli.cluster.connection import connect
from mldiagnostics_cli.runs.cluster_files import fetched_run, fetched_session, stored_sessions
from mldiagnostics_cli.runs.deletion import DeletableRun
from mldiagnostics_cli.runs.file_runs import PLOT_POINTS
from mldiagnostics_cli.runs.source import RunSource

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mldiagnostics.runs import AttemptRow, MetricSeries, RankRow, RunRow, SessionRow

    from mldiagnostics_cli.cluster.connection import Cluster
    from mldiagnostics_cli.cluster.options import ClusterOptions
    from mldiagnostics_cli.runs.run_filter import RunFilter

    Body = dict[str, Any]

__all__ = ["ClusterRuns", "find_run_object", "open_cluster_runs"]

T = TypeVar("T")

_SHOWN = 5
"""So many of the possible runs are named in a message."""
_BUCKET = "gs://"


async def find_run_object(cluster: Cluster, run: str) -> Body:
    """Return the MLRun that a user means.

    Args:
        cluster: The cluster.
        run: Name of the MLRun, id of the run or its beginning, or name of the run or of its workload.

    Raises:
        ConfigurationError: No run or several runs are meant.
        ClusterError: The MLRuns cannot be read.
    """
    if cluster.scope is not None and run:
        try:
            return await cluster.client.get(path_to(*RUNS.gvr, namespace=cluster.scope, name=run))
        except NotFound:
            pass
    bodies = await cluster.client.items(path_to(*RUNS.gvr, namespace=cluster.scope), dict)
    found = _meant(bodies, run)
    if not found:
        raise ConfigurationError(
            f"{run}: no run in {cluster.place} has this name, or an id that starts so; `mldiag runs list -A` shows the "
            "runs of all namespaces"
        )
    if len(found) > 1:
        shown = ", ".join(_object_name(each) for each in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ConfigurationError(f"{run}: {len(found)} runs in {cluster.place} are meant: {shown}{more}; give one name")
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
        rows = [row for body in bodies if wanted.matches(row := self._row(body))]
        return sorted(rows, key=lambda row: (-(row.created or 0.0), row.run_id))[: wanted.limit]

    @override
    def find(self, run: str) -> RunRow:
        return self._row(self._wait(find_run_object(self._cluster, run)))

    @override
    def again(self, row: RunRow) -> RunRow:
        return self._row(self._wait(self._cluster.client.get(self._path(row))))

    @override
    def attempts(self, row: RunRow) -> list[AttemptRow]:
        return attempts_of(self._body(row), row)

    @override
    def profiles(self, row: RunRow) -> list[SessionRow]:
        return sessions_of(self._body(row))

    @override
    def stored_profiles(self, row: RunRow) -> list[SessionRow]:
        return stored_sessions(row, self.profiles(row))

    @override
    def fetched(self, row: RunRow) -> AbstractContextManager[RunRow]:
        return fetched_run(self._cluster, self._wait, row)

    @override
    def fetched_profile(self, profile: SessionRow) -> AbstractContextManager[SessionRow]:
        return fetched_session(self._cluster, self._wait, profile)

    @override
    def hosts(self, row: RunRow) -> list[RankRow]:
        labels = f"{RUN_LABEL}={run_label(row.run_id)}"
        pods = self._wait(
            self._cluster.client.items(path_to("", "v1", "pods", namespace=row.namespace), PodView.of, labels=labels)
        )
        return hosts_of(self._body(row), pods, attempt=row.attempt)

    @override
    def curves(self, row: RunRow, metrics: Sequence[str] | None, *, rank: int) -> list[MetricSeries]:
        return series(row, metrics, rank=rank, points=PLOT_POINTS) if _is_readable(row) else []

    @override
    def last_metrics(self, row: RunRow) -> Mapping[str, float]:
        return dict((self._body(row).get("status") or {}).get("metrics") or {})

    @override
    def goodput(self, row: RunRow) -> float | None:
        if row.goodput is not None or not _is_readable(row):
            return row.goodput
        report = goodput(row)
        return report.cumulative.goodput if report else None

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


def _meant(bodies: Sequence[Body], run: str) -> list[Body]:
    """Return the runs that a name means: by the most exact way that finds any."""
    rows = [(body, run_row_of(body)) for body in bodies]
    ways = (
        lambda body, row: run in {_object_name(body), row.run_id},
        lambda _, row: row.run_id.startswith(run),
        lambda _, row: run in {row.name, (row.workload or {}).get("name")},
    )
    found = ([body for body, row in rows if is_meant(body, row)] for is_meant in ways)
    return next(filter(None, found), [])


def _object_name(body: Body) -> str:
    return str(body["metadata"]["name"])


def _is_readable(row: RunRow) -> bool:
    """Return whether the files of a run can be read from this machine: volumes of the operator cannot."""
    return row.directory.startswith(_BUCKET)
