"""Journal of reports in the operator's storage; only its content is acknowledged."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from contextlib import suppress
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError
from mldiagnostics_api.captures.location import Location, Medium

from mldiagnostics_operator.control_plane.journal.stored_journals import stored_journals
from mldiagnostics_operator.control_plane.journal.volume_shares import JournalSize, VolumeShares
from mldiagnostics_operator.control_plane.limits import (
    FINAL_WAIT_S,
    JOURNAL_CLOSE_S,
    JOURNAL_COUNT_INTERVAL_S,
    JOURNAL_INTERVAL_S,
    JOURNAL_MERGES,
    JOURNAL_STARTS,
    JOURNAL_TICK_S,
    JOURNAL_WRITES,
    JOURNAL_WRITES_OF_NAMESPACE,
    JOURNALS_PER_SECOND,
    MAX_SEGMENT_BYTES,
    MAX_STATE_BYTES,
)
from mldiagnostics_operator.control_plane.memory.journal_page import JournalContent, read_mark, read_state
from mldiagnostics_operator.control_plane.memory.run_memory import WrittenFile
from mldiagnostics_operator.control_plane.slices import sliced
from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.memory.event_log import Segment
    from mldiagnostics_operator.control_plane.memory.journal_page import JournalPage
    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.storage import LogDirectory, Storage

_log: Final = logging.getLogger(__name__)
_ANY_VOLUME: Final = Location(Medium.VOLUME, "")
_ANY_ACCOUNT: Final = "account:"
"""Stands for the owner of a run that is reported from outside the cluster."""


class JournalUnavailable(Exception):
    """The journal cannot be read now; the error of the storage is the cause."""


class Journal:
    """Writes reports below the operator's storage, and reads them for a new leader.

    `<root>/<run id>/reported/` has `state.json`, which is written whole, and `records/` with goodput events, which
    `python -m mldiagnostics.goodput` reads. A run that an account outside the cluster reports is below
    `<root>/<namespace>/<run id>/reported/`: its id is free to choose, and must not meet that of another namespace.

    While the leader changes, two processes may write. Each replaces only the state that it has read or written itself,
    known by its mark. It reads any other first, which adds it to the memory, so that neither drops what the other one
    has acknowledged.

    A namespace that has used its share of the volume (`VolumeShares`) is not written until there is room again.

    Args:
        table: The memory of the reports.
        storage: Opens directories.
        root: The operator's default storage; None for its volume.
        written: Called after each write with the page; None if it failed.
        limited: Called with the namespace of each run that is not written, because it has used its share.
    """

    def __init__(
        self,
        table: ReportTable,
        storage: Storage,
        root: Location | None,
        written: Callable[[RunKey, JournalPage | None], None] = lambda _key, _page: None,
        *,
        limited: Callable[[str], None] = lambda _: None,
        interval_s: float = JOURNAL_INTERVAL_S,
        final_wait_s: float = FINAL_WAIT_S,
    ) -> None:
        self._table = table
        self._storage = storage
        self._root = _ANY_VOLUME if root is None or root.medium is Medium.POD else root
        self._written = written
        self._limited = limited
        self._shares = VolumeShares()
        self._interval_s = interval_s
        self._final_wait_s = final_wait_s
        self._due: dict[RunKey, float] = {}
        """When a run may be written again, by the loop's clock."""
        self._marks: dict[RunKey, str] = {}
        """Marks of the states that the memory contains."""
        self._next_mark = (f"{writer}-{number}" for writer in (secrets.token_hex(8),) for number in count(1))
        self._writing: dict[RunKey, asyncio.Task[bool]] = {}
        self._updates: set[RunKey] = set()
        """Runs that are written although no process waits for it."""
        self._recalls: dict[RunKey, asyncio.Task[None]] = {}
        self._slots = FairSlots(JOURNAL_WRITES, per_namespace=JOURNAL_WRITES_OF_NAMESPACE)
        self._faulty = False

    def location(self, key: RunKey, owner: str) -> Location:
        """Return the directory of a run's journal."""
        parts = (key.namespace, key.run_id) if owner else (key.run_id,)
        return self._root.child(*parts, layout.REPORTED_DIR)

    async def run(self) -> None:
        """Write changed runs until cancelled."""
        while True:
            await asyncio.sleep(JOURNAL_TICK_S)
            now = asyncio.get_running_loop().time()
            self._due = {key: due for key, due in self._due.items() if due > now}
            for key in list(islice(self._startable(), JOURNAL_STARTS - len(self._updates))):
                self._updates.add(key)
                self._start(key)

    def _startable(self) -> Iterator[RunKey]:
        """Yield the runs to write now, namespaces in turn.

        Others wait in the memory, not for a slot: a run that ends is written before them.
        """
        started = Counter(key.namespace for key in self._updates)
        for key in self._table.unpersisted():
            if key in self._due or key in self._writing or started[key.namespace] >= JOURNAL_WRITES_OF_NAMESPACE:
                continue
            started[key.namespace] += 1
            yield key

    async def keep_counting(self) -> None:
        """Count the journals on the volume now and then, until cancelled.

        Former leaders wrote some, and users delete some; all count for the share of their namespace.
        """
        while self._root.medium is Medium.VOLUME:
            try:
                self._shares.counted(await stored_journals(self._storage.directory(self._root)))
            except StoreError as error:
                _log.warning("The journals on the volume are not counted: %(error)s", {"error": error})
            await asyncio.sleep(JOURNAL_COUNT_INTERVAL_S)

    async def close(self) -> None:
        """Write everything that is not written yet, within `JOURNAL_CLOSE_S`."""
        end_s = asyncio.get_running_loop().time() + JOURNAL_CLOSE_S
        await _finish(self._writing.values(), end_s)
        await _finish([self._start(key) for key in self._table.unpersisted()], end_s)

    async def flush(self, key: RunKey) -> None:
        """Write a run now; return when it is written, or after 2 s by default."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._final_wait_s):
                if writing := self._writing.get(key):
                    await asyncio.shield(writing)
                if self._table.is_unpersisted(key):
                    await asyncio.shield(self._writing.get(key) or self._start(key))

    async def recall(self, key: RunKey, owner: str | None = None) -> None:
        """Read the journal of a run that is not in memory, and put it there.

        Args:
            key: The run.
            owner: `Sender.owner` of its reporters; None if it is not known.

        Raises:
            JournalUnavailable: The storage does not work.
        """
        task = self._recalls.get(key)
        if task is None:
            task = self._recalls[key] = asyncio.create_task(self._recall(key, owner))
            task.add_done_callback(lambda _: self._recalls.pop(key, None))
        try:
            await asyncio.shield(task)
        except StoreError as error:
            raise JournalUnavailable(f"the journal cannot be read: {error}") from error

    def _start(self, key: RunKey) -> asyncio.Task[bool]:
        task = self._writing[key] = asyncio.create_task(self._write(key))
        task.add_done_callback(lambda _: self._end(key))
        return task

    def _end(self, key: RunKey) -> None:
        self._writing.pop(key, None)
        self._updates.discard(key)

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run."""
        self._marks.pop(key, None)
        self._shares.forget(key)

    async def _write(self, key: RunKey) -> bool:
        """Write the changes of a run; return whether that succeeded."""
        async with self._slots.slot(key.namespace):
            owner = self._table.owner(key)
            if owner is None:
                return True
            interval_s = max(self._interval_s, self._table.run_count / JOURNALS_PER_SECOND)
            self._due[key] = asyncio.get_running_loop().time() + interval_s
            try:
                if not await self._is_admitted(key.namespace):
                    return False
                page = await self._put_changes(key, owner)
            except (StoreError, OSError) as error:
                self._note(key, None, error)
                return False
            if page is not None:
                self._note(key, page)
            return True

    async def _is_admitted(self, namespace: str) -> bool:
        """Return whether a namespace has not used its share of the volume."""
        space = await self._storage.space(self._root)
        admitted = self._shares.admits(namespace, space and space.free)
        if not admitted:
            self._limited(namespace)
        if self._shares.is_first_excess(namespace, admitted=admitted):
            _log.warning(
                "Namespace %(namespace)s: its reports are not persisted; its journals exceed the free space",
                {"namespace": namespace},
            )
        return admitted

    async def _put_changes(self, key: RunKey, owner: str) -> JournalPage | None:
        """Write the changes of a run, joined with those of another leader."""
        directory = self._storage.directory(self.location(key, owner))
        for left in reversed(range(JOURNAL_MERGES)):
            mark = next(self._next_mark)
            try:
                page = await sliced(self._table.page(key, mark))
                if page is None:
                    break
                files = await _put(directory, page, self._marks.get(key, ""))
            except AlreadyStored:
                self._table.not_persisted(key)
                if not left:
                    raise
                await self._read(key, owner, directory)
            except BaseException:
                self._table.not_persisted(key)
                raise
            else:
                self._marks[key] = mark
                events = sum(len(segment.lines) for segment in page.segments.values())
                self._shares.written(key, JournalSize(len(page.state), events))
                self._table.persisted(key, page, files, time.time())
                return page
        return None

    def _note(self, key: RunKey, page: JournalPage | None, error: Exception | None = None) -> None:
        self._written(key, page)
        if bool(error) != self._faulty:
            self._faulty = bool(error)
            if error:
                _log.warning("Reports are not persisted and not acknowledged: %(error)s", {"error": error})
            else:
                _log.info("Reports are persisted again")

    async def _recall(self, key: RunKey, owner: str | None) -> None:
        for each in ("", _ANY_ACCOUNT) if owner is None else (owner,):
            if await self._read(key, each, self._storage.directory(self.location(key, each))):
                return

    async def _read(self, key: RunKey, owner: str, directory: LogDirectory) -> bool:
        """Add the journal of a run to the memory; return whether there is one."""
        text, state = b"", None
        try:
            text = await directory.load(layout.REPORTED_STATE, max_bytes=MAX_STATE_BYTES)
            state = await sliced(read_state(text, key))
        except NotStored:
            return False
        except ValueError as error:
            _log.warning(
                "%(location)s: the journal is ignored: %(error)s", {"location": directory.location, "error": error}
            )
        events, size = dict[str, int](), 0
        for entry in await directory.list(layout.RECORDS_DIR):
            segment = layout.record_segment(entry.key)
            if segment is not None:
                size += entry.bytes
                events[segment.incarnation] = max(events.get(segment.incarnation, 0), segment.number)
        self._marks[key] = read_mark(text)
        self._shares.restored(key, JournalSize(len(text), size))
        if state is not None:
            known = {name: number for name, number in events.items() if name in state.processes}
            await sliced(self._table.restore(key, JournalContent(state.facts.owner or owner, state, known)))
        return state is not None


async def _finish(writes: Collection[asyncio.Task[bool]], end_s: float) -> None:
    """Wait for writes until a moment of the loop's clock; give up those left."""
    if writes:
        _, left = await asyncio.wait(writes, timeout=end_s - asyncio.get_running_loop().time())
        await cancel_all(left)


async def _put(directory: LogDirectory, page: JournalPage, mark: str) -> Mapping[str, WrittenFile]:
    """Write new events first, then the state, which never claims missing events.

    Args:
        directory: The journal.
        page: Changes of the run.
        mark: Mark of the state that may be replaced.

    Returns:
        The written files of events, by incarnation.

    Raises:
        AlreadyStored: The state has another mark.
    """
    files = {incarnation: await _put_segment(directory, segment) for incarnation, segment in page.segments.items()}
    await directory.put(layout.REPORTED_STATE, page.state, replaces=lambda head: read_mark(head) == mark)
    return files


async def _put_segment(directory: LogDirectory, segment: Segment) -> WrittenFile:
    """Write new events, together with those of the open file."""
    before = await _lines_of(directory, segment.extends) if segment.extends else b""
    content = segment.head + before + segment.lines
    try:
        await directory.put(segment.key, content)
    except AlreadyStored:
        return WrittenFile(len(content), foreign=True)
    if before and segment.extends and segment.extends != segment.key:
        await directory.delete(segment.extends)
    return WrittenFile(len(content))


async def _lines_of(directory: LogDirectory, key: str) -> bytes:
    """Return the lines of a file after its head; none if it cannot be extended."""
    try:
        content = await directory.load(key, max_bytes=MAX_SEGMENT_BYTES)
    except (NotStored, ValueError):
        return b""
    return content.partition(b"\n")[2]
