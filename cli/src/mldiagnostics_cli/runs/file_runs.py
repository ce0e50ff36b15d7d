"""Runs from their files, below a directory or a prefix of a bucket."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.layout import RUN_RECORD, edits_key
from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.locations import is_on_volume, local_path
from mldiagnostics.runs import attempt_rows, list_runs, ranks, series, sessions, with_goodput
from mldiagnostics.runs.edits import edit_run
from mldiagnostics.store import open_store
from typing_extensions import override

from mldiagnostics_cli.deletion import delete_files
from mldiagnostics_cli.runs.source import DeletableRun, RunSource
from mldiagnostics_cli.sources import check_root, find

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from mldiagnostics.runs import AttemptRow, MetricSeries, RankRow, RunRow, SessionRow
    from mldiagnostics.runs.run_filter import RunFilter
    from mldiagnostics.runs.run_record import RecordedRun
    from mldiagnostics.store import Store

    from mldiagnostics_cli.runs.run_edit import RunEdit


MAX_ACCOUNTED_BYTES: Final = 64 * 2**20
"""Records of a run whose goodput is computed for lists and pages: about two seconds of work."""

PLOT_POINTS: Final = 1000
"""Points that are kept of a curve: more than the columns of a terminal."""


class FileRuns(RunSource):
    """Runs below a root, a path or URL; as `RunSource` says."""

    def __init__(self, storage: str) -> None:
        self._storage = storage
        self._ranks: dict[str, list[RankRow]] = {}
        """Processes as of the moment when their run was read, by its directory."""
        self._goodput: dict[str, tuple[float, float | None]] = {}
        """End and goodput of runs that have ended, by directory."""

    @property
    @override
    def place(self) -> str:
        return self._storage

    @override
    def rows(self, wanted: RunFilter) -> list[RunRow]:
        rows = list_runs(self._storage, **asdict(wanted))
        if not rows:
            check_root(self._storage)
        return rows

    @override
    def find(self, run: str, *, shortest_prefix: int = 1) -> RunRow:
        return self._kept(find(self._storage, run, shortest_prefix=shortest_prefix))

    @override
    def again(self, row: RunRow) -> RunRow:
        return self._kept(find(self._storage, row.directory))

    @override
    def attempts(self, row: RunRow) -> list[AttemptRow]:
        return attempt_rows(row)

    @override
    def sessions(self, row: RunRow, *, with_files: bool = False) -> list[SessionRow]:
        return sessions(row)

    @override
    def fetched(self, row: RunRow) -> AbstractContextManager[RunRow]:
        return nullcontext(row)

    @override
    def fetched_session(self, session: SessionRow) -> AbstractContextManager[SessionRow]:
        if is_on_volume(session.url):
            raise ConfigurationError(
                f"{session.url}: lies on the operator's volume; choose its cluster with --context or -n"
            )
        return nullcontext(session)

    @override
    def hosts(self, row: RunRow) -> list[RankRow]:
        return self._ranks[row.directory] if row.directory in self._ranks else ranks(row)

    @override
    def curves(self, row: RunRow, metrics: Sequence[str] | None, *, rank: int) -> list[MetricSeries]:
        return series(row, metrics, rank=rank, points=PLOT_POINTS)

    @override
    def last_metrics(self, row: RunRow) -> None:
        return None

    @override
    def accounted(self, rows: Sequence[RunRow]) -> list[RunRow]:
        if len(rows) > 1 and local_path(self._storage) is None:
            return list(rows)
        return [self._accounted(row) for row in rows]

    def _kept(self, run: RecordedRun) -> RunRow:
        self._ranks[run.row.directory] = run.ranks
        return run.row

    def _accounted(self, row: RunRow) -> RunRow:
        """Return a run with its goodput; that of a run that has ended is computed once."""
        if (known := self._goodput.get(row.directory)) is not None and known[0] == row.ended:
            return replace(row, goodput=known[1])
        try:
            accounted = with_goodput(row, most_bytes=MAX_ACCOUNTED_BYTES)
        except MLDiagnosticsError:  # `mldiag goodput` says why
            return row
        if row.ended is not None:
            self._goodput[row.directory] = row.ended, accounted.goodput
        return accounted

    @override
    def edited(self, row: RunRow, edit: RunEdit) -> RunRow:
        store, folder = _opened(row)
        own_tags = RunDescription.of(row.document).tags or ()
        edit_run(store, folder, lambda before: edit.apply(row, before, own_tags=own_tags))
        return self.again(row)

    @override
    def deletable(self, row: RunRow) -> DeletableRun:
        store, folder = _opened(row)
        entries = list(store.list(folder))
        last = [edits_key(folder), f"{folder}/{RUN_RECORD}"]
        delete = partial(delete_files, store, [entry.key for entry in entries], last=last)
        return DeletableRun(row, delete, len(entries), sum(entry.bytes for entry in entries))


def _opened(row: RunRow) -> tuple[Store, str]:
    """Return the store of the root, and the directory of the run below it.

    That store removes the directory with its last file.
    """
    root, _, folder = row.directory.rpartition("/")
    return open_store(root or "/"), folder
