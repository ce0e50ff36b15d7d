"""Memory of all reported runs: idempotent, ordered by sequence, bounded; pure."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.reports.models import INTERVAL_S, Answer

from mldiagnostics_operator.control_plane.limits import (
    MAX_EVENTS_OF_RUN,
    MAX_PROCESSES_OF_RUN,
    PROCESS_BYTES,
    PROCESSES_OF_SLICE,
    RUN_BYTES,
    RUNS_OF_SLICE,
)
from mldiagnostics_operator.control_plane.memory.budget import ReportBudget
from mldiagnostics_operator.control_plane.memory.intervals import ReportRate, interval_s
from mldiagnostics_operator.control_plane.memory.run_memory import Change, Extras, RunMemory, batched

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping

    from mldiagnostics_api.reports.models import Phase, Report
    from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.identity.sender import Sender
    from mldiagnostics_operator.control_plane.memory.journal_page import JournalContent, JournalPage
    from mldiagnostics_operator.control_plane.memory.run_memory import WrittenFile

    Changed = Callable[[RunKey, Change], None]

NO_EXTRAS = Extras()


class TableFull(Exception):
    """The table has no room for another run, process or event; try again later."""


class NotTheReporter(Exception):
    """The run was reported by somebody else."""


class ReportTable:
    """Memory of the reports of all runs.

    Used by one event loop; no method waits. `apply` takes reports in any order and number: a repeat, or a report older
    than the newest one of its process, changes no fact.

    Args:
        budget: Bytes that the reports may take.
        listening_since: Unix time by which each process that lives has reported to this leader. The silence of one that
            has reported to a former leader alone counts from then.

    Example:
        table.subscribe(lambda key, change: print(key, change))
        table.apply(key, report, sender, received=time.time())
        run = table.view(key)
    """

    def __init__(self, budget: ReportBudget | None = None, *, listening_since: float = 0.0) -> None:
        self.budget = budget or ReportBudget()
        self.listening_since: Final = listening_since
        self._runs: dict[RunKey, RunMemory] = {}
        self._processes = 0
        self.rate: Final = ReportRate()
        """Rate of the reports that the leader takes."""
        self._reporting: Mapping[str, int] = {}
        """Reporting processes, by namespace."""
        self._subscribers: list[Changed] = []
        self._changed: dict[str, dict[RunKey, None]] = {}
        """Runs that the journal has to write, by namespace."""

    def require_room(self, key: RunKey, report: Report) -> None:
        """Check that a report can be applied, before its large parts are read.

        Raises:
            TableFull: A new process has no room.
        """
        run = self._runs.get(key)
        if run is not None and run.knows(report):
            return
        needed = PROCESS_BYTES + (RUN_BYTES if run is None else 0)
        if self.budget.state.room(key) < needed or (run is not None and run.process_count >= MAX_PROCESSES_OF_RUN):
            raise TableFull(
                f"run {key.run_id}: namespace {key.namespace} has used its share of the control plane's memory; "
                "report fewer runs or processes, or try again later"
            )

    def apply(self, key: RunKey, report: Report, sender: Sender, received: float, extras: Extras = NO_EXTRAS) -> None:
        """Apply a report.

        Args:
            key: The run, as attributed to the sender.
            report: The report.
            sender: Its sender, from the token.
            received: When it arrived, in Unix seconds.
            extras: Its events and configurations.

        Raises:
            TableFull: There is no room; the report was not applied.
            NotTheReporter: Another account reported this run, or pods of the cluster do.
        """
        run = self._runs.get(key)
        if run is not None and run.owner != sender.owner:
            raise NotTheReporter(f"run {key.run_id}: was reported by another client; use a run id of your own")
        self.require_room(key, report)
        if run is None:
            run = self._put(key, RunMemory(key, sender.owner, received))
        with self._charged(key, run):
            change = run.apply(
                report,
                sender,
                received,
                extras,
                room=self.budget.state.room(key),
                interval_s=interval_s(
                    self._reporting, key.namespace, self.rate, before_s=run.interval_s(report.incarnation)
                ),
            )
        self._note(key, change)

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
            if self.budget.state.room(key) < RUN_BYTES:
                raise TableFull(f"run {key.run_id}: namespace {key.namespace} has used its share of the memory")
            run = self._put(key, RunMemory(key, "", received))
        if run.apply_peer(alias=alias, name=name, phase=phase, storage=storage, received=received):
            self._note(key, Change.PHASE)

    def answer(self, key: RunKey, incarnation: str) -> Answer:
        """Return what is persisted of a process, and when it reports again."""
        run = self._runs.get(key)
        sequence, events = run.persisted(incarnation) if run else (0, 0)
        return Answer(
            persisted_sequence=sequence,
            persisted_events=events,
            interval_seconds=run.interval_s(incarnation) if run else INTERVAL_S,
            accepts_events=self.accepts_events(key),
        )

    def count_reporting(self, now: float) -> Generator[None, None, None]:
        """Count the processes that report, which decides how often they do.

        It yields after each slice of work.

        Args:
            now: Unix time.
        """
        reporting = Counter[str]()
        for keys in batched(tuple(self._runs), RUNS_OF_SLICE):
            for key in keys:
                if (run := self._runs.get(key)) is not None:
                    reporting[key.namespace] += run.reporting(now)
            yield
        self._reporting = +reporting

    def accepts_events(self, key: RunKey) -> bool:
        """Return whether a run has room for more goodput events."""
        return self.event_room(key) > 0

    def known_events(self, key: RunKey, incarnation: str) -> int:
        """Return how many goodput events of a process are known."""
        run = self._runs.get(key)
        return run.events.known(incarnation) if run else 0

    def event_room(self, key: RunKey) -> int:
        """Return how many more goodput events a run may have."""
        run = self._runs.get(key)
        return run.events.room if run else MAX_EVENTS_OF_RUN

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
        """Call a function with each run that changes, and its change; it returns at once.

        A run of 2000 hosts changes 200 times a second: coalesce the calls.
        """
        self._subscribers.append(changed)

    def runs(self) -> Collection[RunKey]:
        """Return the runs of which something is known."""
        return tuple(self._runs)

    def forget(self, key: RunKey) -> None:
        """Drop a run from memory; its journal stays, and a later report reads it again."""
        run = self._runs.pop(key, None)
        self._unmark(key)
        if run is not None:
            self._processes -= run.process_count
            self.budget.state.add(key, -run.size)
            self.budget.events.add(key, -run.events.open_bytes)

    @property
    def run_count(self) -> int:
        """Runs in memory."""
        return len(self._runs)

    @property
    def process_count(self) -> int:
        """Processes of all runs in memory."""
        return self._processes

    def unpersisted(self) -> Iterable[RunKey]:
        """Return the runs that the journal has to write, namespaces in turn.

        The first one of a namespace has waited for the longest time.
        """
        turns = [list(keys) for keys in self._changed.values()]
        return tuple(key for turn in zip_longest(*turns) for key in turn if key is not None)

    def is_unpersisted(self, key: RunKey) -> bool:
        """Return whether the journal has to write a run."""
        return key in self._changed.get(key.namespace, ())

    def page(self, key: RunKey, mark: str = "") -> Generator[None, None, JournalPage | None]:
        """Return the changes for the journal; None if it has everything.

        It yields after each slice of work.

        Args:
            key: The run.
            mark: Mark of the state, different in each write.
        """
        run = self._runs.get(key)
        if run is None or not self.is_unpersisted(key):
            return None
        self._unmark(key)
        return (yield from run.page(mark))

    def persisted(self, key: RunKey, page: JournalPage, files: Mapping[str, WrittenFile], now: float) -> None:
        """Note that a page was written.

        Args:
            key: The run.
            page: Result of `page`.
            files: The written files of events, by incarnation.
            now: Unix time.
        """
        run = self._runs.get(key)
        if run is not None:
            with self._charged(key, run):
                run.note_persisted(page, files, now)

    def not_persisted(self, key: RunKey) -> None:
        """Note that a page was not written; `unpersisted` has the run again."""
        if key in self._runs:
            self._mark(key)

    def restore(self, key: RunKey, content: JournalContent) -> Generator[None, None, None]:
        """Add what the journal of a run has, below what was reported since.

        It yields after each slice of work.
        """
        saved = content.state.processes
        for names in batched(saved, PROCESSES_OF_SLICE):
            run = self._restored(key, content)
            with self._charged(key, run):
                run.restore_processes({name: saved[name] for name in names}, self.listening_since)
            yield
        run = self._restored(key, content)
        with self._charged(key, run):
            run.restore_facts(content)
        self._notify(key, Change.PHASE)

    def _restored(self, key: RunKey, content: JournalContent) -> RunMemory:
        return self._runs.get(key) or self._put(key, RunMemory(key, content.owner, content.state.facts.first_received))

    def set_goodput(self, key: RunKey, goodput: ReportedGoodput) -> None:
        """Set the account of a run."""
        run = self._runs.get(key)
        if run is not None and run.set_goodput(goodput):
            self._notify(key, Change.FACTS)

    def _put(self, key: RunKey, run: RunMemory) -> RunMemory:
        self._runs[key] = run
        self.budget.state.add(key, run.size)
        return run

    @contextmanager
    def _charged(self, key: RunKey, run: RunMemory) -> Iterator[None]:
        """Count what the block changes in the memory of a run."""
        size, lines, processes = run.size, run.events.open_bytes, run.process_count
        yield
        self.budget.state.add(key, run.size - size)
        self.budget.events.add(key, run.events.open_bytes - lines)
        self._processes += run.process_count - processes

    def _note(self, key: RunKey, change: Change) -> None:
        if change is not Change.NONE:
            self._mark(key)
            self._notify(key, change)

    def _mark(self, key: RunKey) -> None:
        self._changed.setdefault(key.namespace, {})[key] = None

    def _unmark(self, key: RunKey) -> None:
        keys = self._changed.get(key.namespace, {})
        keys.pop(key, None)
        if not keys:
            self._changed.pop(key.namespace, None)

    def _notify(self, key: RunKey, change: Change) -> None:
        for changed in self._subscribers:
            changed(key, change)
