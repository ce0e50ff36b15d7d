"""Memory of all reported runs: idempotent, ordered by sequence, bounded; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from mldiagnostics.control_plane import packing
from mldiagnostics_api.reports import Answer, InvalidReport

from mldiagnostics_operator.control_plane.limits import (
    MAX_OPEN_BYTES,
    MAX_PROCESSES,
    MAX_PROCESSES_OF_RUN,
    MAX_RUNS,
    MAX_SHARE,
)
from mldiagnostics_operator.control_plane.run_memory import RunMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mldiagnostics_api.reported import ReportedGoodput, ReportedRun, RunKey
    from mldiagnostics_api.reports import Phase, Report

    from mldiagnostics_operator.control_plane.journal_page import JournalContent, JournalPage
    from mldiagnostics_operator.control_plane.sender import Sender

    Changed = Callable[[RunKey], None]


class TableFull(Exception):
    """The table has no room for another run, process or event; try again later."""


class NotTheReporter(Exception):
    """The run was reported by somebody else."""


class ReportTable:
    """Memory of the reports of all runs.

    Used by one event loop; no method waits. `apply` takes reports in any order and number: a repeat, or a report older
    than the newest one of its process, changes no fact.

    Example:
        table.subscribe(changed.add)
        table.apply(key, report, sender, received=time.time())
        run = table.view(key)
    """

    def __init__(self) -> None:
        self._runs: dict[RunKey, RunMemory] = {}
        self._processes = Counter[str]()
        """By namespace."""
        self._of_namespace = Counter[str]()
        self._open_bytes = 0
        self._subscribers: list[Changed] = []
        self._changed: dict[RunKey, None] = {}

    def apply(self, key: RunKey, report: Report, sender: Sender, received: float) -> None:
        """Apply a report.

        Args:
            key: The run, as attributed to the sender.
            report: The report.
            sender: Its sender, from the token.
            received: When it arrived, in Unix seconds.

        Raises:
            TableFull: There is no room; the report was not applied.
            NotTheReporter: Another account reported this run, or pods of the cluster do.
            InvalidReport: The goodput events cannot be read.
        """
        entries = _entries(report)
        run = self._runs.get(key)
        if run is not None and run.owner != sender.owner:
            raise NotTheReporter(f"run {key.run_id}: was reported by another client; use a run id of your own")
        if run is None or not run.knows(report):
            self._require_room(key, run)
        if entries and self._open_bytes > MAX_OPEN_BYTES:
            raise TableFull("goodput events: too many are not persisted yet; try again later")
        if run is None:
            run = self._put(key, RunMemory(key, sender.owner, received))
        before, processes = run.open_bytes, run.process_count
        changed = run.apply(report, sender, received, entries)
        self._open_bytes += run.open_bytes - before
        self._processes[key.namespace] += run.process_count - processes
        if changed:
            self._note(key)

    def apply_peer(
        self, key: RunKey, *, alias: str, name: str, phase: Phase | None, storage: str, received: float
    ) -> None:
        """Apply a report of the peer's client: a name, its own id of the run, a phase.

        Raises:
            TableFull: There is no room for another run.
            NotTheReporter: An account outside the cluster reported this run.
        """
        run = self._runs.get(key)
        if run is not None and run.owner:
            raise NotTheReporter(f"run {key.run_id}: was reported by another client")
        if run is None:
            self._require_room(key, None)
            run = self._put(key, RunMemory(key, "", received))
        if run.apply_peer(alias=alias, name=name, phase=phase, storage=storage, received=received):
            self._note(key)

    def answer(self, key: RunKey, incarnation: str) -> Answer:
        """Return what is persisted of a process."""
        run = self._runs.get(key)
        sequence, events = run.persisted(incarnation) if run else (0, 0)
        accepts_events = run is None or run.accepts_events
        return Answer(persisted_sequence=sequence, persisted_events=events, accepts_events=accepts_events)

    def accepts_events(self, key: RunKey) -> bool:
        """Return whether a run has room for more goodput events."""
        run = self._runs.get(key)
        return run is None or run.accepts_events

    def misses_events(self, key: RunKey, report: Report) -> bool:
        """Return whether the events of a report begin behind those that are known."""
        run = self._runs.get(key)
        first = report.events.first if report.events else 0
        return first > (run.known_events(report.incarnation) if run else 0)

    def view(self, key: RunKey) -> ReportedRun | None:
        """Return what is known about a run, immutable; None if nothing was reported.

        It costs a microsecond for each process after a change.
        """
        run = self._runs.get(key)
        return run.view() if run else None

    def owner(self, key: RunKey) -> str | None:
        """Return `Sender.owner` of the first reporter; None for an unknown run."""
        run = self._runs.get(key)
        return run.owner if run else None

    def subscribe(self, changed: Changed) -> None:
        """Call a function with the key of each run that changes; it returns at once.

        A run of 2000 hosts changes 200 times a second: coalesce the calls.
        """
        self._subscribers.append(changed)

    def runs(self) -> Iterable[RunKey]:
        """Return the runs of which something is known."""
        return tuple(self._runs)

    def forget(self, key: RunKey) -> None:
        """Drop a run from memory; its journal stays, and a later report reads it again."""
        run = self._runs.pop(key, None)
        self._changed.pop(key, None)
        if run is not None:
            self._of_namespace[key.namespace] -= 1
            self._processes[key.namespace] -= run.process_count
            self._open_bytes -= run.open_bytes

    @property
    def run_count(self) -> int:
        """Runs in memory."""
        return len(self._runs)

    @property
    def process_count(self) -> int:
        """Processes of all runs in memory."""
        return self._processes.total()

    def unpersisted(self) -> Iterable[RunKey]:
        """Return the runs that the journal has to write, the longest waiting first."""
        return tuple(self._changed)

    def page(self, key: RunKey, mark: str = "") -> JournalPage | None:
        """Return the changes for the journal; None if it has everything.

        Args:
            key: The run.
            mark: Mark of the state, different in each write.
        """
        run = self._runs.get(key)
        if run is None or key not in self._changed:
            return None
        del self._changed[key]
        return run.page(mark)

    def persisted(self, key: RunKey, page: JournalPage, foreign: Collection[str] = ()) -> None:
        """Note that a page was written.

        Args:
            key: The run.
            page: Result of `page`.
            foreign: Incarnations whose segment another leader had written before.
        """
        run = self._runs.get(key)
        if run is not None:
            before = run.open_bytes
            run.note_persisted(page, foreign)
            self._open_bytes += run.open_bytes - before

    def not_persisted(self, key: RunKey) -> None:
        """Note that a page was not written; `unpersisted` has the run again."""
        if key in self._runs:
            self._changed[key] = None

    def restore(self, key: RunKey, content: JournalContent) -> None:
        """Add what the journal of a run has, below what was reported since."""
        run = self._runs.get(key)
        if run is None:
            run = self._put(key, RunMemory(key, content.owner, content.first_received))
        before, processes = run.open_bytes, run.process_count
        run.restore(content)
        self._open_bytes += run.open_bytes - before
        self._processes[key.namespace] += run.process_count - processes
        self._notify(key)

    def set_goodput(self, key: RunKey, goodput: ReportedGoodput) -> None:
        """Set the account of a run."""
        run = self._runs.get(key)
        if run is not None and run.set_goodput(goodput):
            self._notify(key)

    def _put(self, key: RunKey, run: RunMemory) -> RunMemory:
        self._runs[key] = run
        self._of_namespace[key.namespace] += 1
        return run

    def _require_room(self, key: RunKey, run: RunMemory | None) -> None:
        namespace = key.namespace
        full = (
            (run is None and len(self._runs) >= MAX_RUNS)
            or (run is None and self._of_namespace[namespace] >= MAX_SHARE * MAX_RUNS)
            or (run is not None and run.process_count >= MAX_PROCESSES_OF_RUN)
            or self._processes[namespace] >= MAX_SHARE * MAX_PROCESSES
            or self._processes.total() >= MAX_PROCESSES
        )
        if full:
            raise TableFull(f"run {key.run_id}: the control plane has no room for another process; try again later")

    def _note(self, key: RunKey) -> None:
        self._changed[key] = None
        self._notify(key)

    def _notify(self, key: RunKey) -> None:
        for changed in self._subscribers:
            changed(key)


_NO_ENTRIES: Final[list[packing.Entry]] = []


def _entries(report: Report) -> list[packing.Entry]:
    if report.events is None or not report.events.items:
        return _NO_ENTRIES
    try:
        return packing.unpack(report.events.items)
    except ValueError as error:
        raise InvalidReport(f"report: {error}; send what packing.pack returns") from error
