"""Journal of reports in the operator's storage; only its content is acknowledged."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics import layout
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError
from mldiagnostics_api.location import Location, Medium

from mldiagnostics_operator.control_plane.limits import (
    FINAL_WAIT_S,
    JOURNAL_INTERVAL_S,
    JOURNAL_TICK_S,
    JOURNAL_WRITES,
    MAX_STATE_BYTES,
)
from mldiagnostics_operator.control_plane.run_memory import STATE_VERSION, JournalContent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.reported import RunKey

    from mldiagnostics_operator.control_plane.run_memory import JournalPage
    from mldiagnostics_operator.control_plane.table import ReportTable
    from mldiagnostics_operator.storage import LogDirectory, Storage

_log: Final = logging.getLogger(__name__)
_ANY_VOLUME: Final = Location(Medium.VOLUME, "")


class JournalUnavailable(Exception):
    """The storage does not work now."""


class Journal:
    """Writes reports below the operator's storage, and reads them for a new leader.

    `<root>/<run id>/reported/` has `state.json`, which is written whole, and `records/` with goodput events, which
    `python -m mldiagnostics.goodput` reads. A run that an account outside the cluster reports is below
    `<root>/<namespace>/<run id>/reported/`: its id is free to choose, and must not meet that of another namespace.

    Args:
        table: The memory of the reports.
        storage: Opens directories.
        root: The operator's default storage; None for its volume.
        written: Called after each write with the page; None if it failed.
    """

    def __init__(
        self,
        table: ReportTable,
        storage: Storage,
        root: Location | None,
        written: Callable[[RunKey, JournalPage | None], None] = lambda _key, _page: None,
        *,
        interval_s: float = JOURNAL_INTERVAL_S,
    ) -> None:
        self._table = table
        self._storage = storage
        self._root = _ANY_VOLUME if root is None or root.medium is Medium.POD else root
        self._written = written
        self._interval_s = interval_s
        self._due: dict[RunKey, float] = {}
        """When a run may be written again, by the loop's clock."""
        self._writing: dict[RunKey, asyncio.Task[bool]] = {}
        self._recalls: dict[RunKey, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(JOURNAL_WRITES)
        self._faulty = False

    def location(self, key: RunKey, owner: str) -> Location:
        """Return the directory of a run's journal."""
        parts = (key.namespace, key.run_id) if owner else (key.run_id,)
        return self._root.child(*parts, layout.REPORTED_DIR)

    async def run(self) -> None:
        """Write changed runs until cancelled; then write all of them once more."""
        try:
            while True:
                await asyncio.sleep(JOURNAL_TICK_S)
                now = asyncio.get_running_loop().time()
                self._due = {key: due for key, due in self._due.items() if due > now}
                for key in self._table.unpersisted():
                    if key not in self._due and key not in self._writing:
                        self._start(key)
        finally:
            with suppress(asyncio.CancelledError):
                await self.close()

    async def close(self) -> None:
        """Write everything that is not written yet."""
        await asyncio.gather(*self._writing.values(), return_exceptions=True)
        await asyncio.gather(*(self._start(key) for key in self._table.unpersisted()), return_exceptions=True)

    async def flush(self, key: RunKey) -> None:
        """Write a run now; return when it is written, or after 2 s."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINAL_WAIT_S):
                if writing := self._writing.get(key):
                    await asyncio.shield(writing)
                if key in self._table.unpersisted():
                    await asyncio.shield(self._writing.get(key) or self._start(key))

    async def recall(self, key: RunKey, owner: str = "") -> None:
        """Read the journal of a run that is not in memory, and put it there.

        Args:
            key: The run.
            owner: `Sender.owner` of its reporters.

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
        task.add_done_callback(lambda _: self._writing.pop(key, None))
        return task

    async def _write(self, key: RunKey) -> bool:
        """Write the changes of a run; return whether that succeeded."""
        async with self._slots:
            owner = self._table.owner(key)
            page = self._table.page(key)
            if page is None or owner is None:
                return True
            self._due[key] = asyncio.get_running_loop().time() + self._interval_s
            try:
                await _put(self._storage.directory(self.location(key, owner)), page)
            except (StoreError, OSError) as error:
                self._table.not_persisted(key)
                self._note(key, None, error)
                return False
            except BaseException:
                self._table.not_persisted(key)
                raise
            self._table.persisted(key, page)
            self._note(key, page)
            return True

    def _note(self, key: RunKey, page: JournalPage | None, error: Exception | None = None) -> None:
        self._written(key, page)
        if bool(error) != self._faulty:
            self._faulty = bool(error)
            if error:
                _log.warning("Reports are not persisted and not acknowledged: %s", error)
            else:
                _log.info("Reports are persisted again")

    async def _recall(self, key: RunKey, owner: str) -> None:
        directory = self._storage.directory(self.location(key, owner))
        try:
            state = _state(await directory.load(layout.REPORTED_STATE, max_bytes=MAX_STATE_BYTES), key)
        except NotStored:
            return
        except ValueError as error:
            _log.warning("%s: the journal is ignored: %s", directory.location, error)
            state = {}
        events: dict[str, int] = {}
        for entry in await directory.list(layout.RECORDS_DIR):
            segment = layout.record_segment(entry.key)
            if segment is not None:
                events[segment.incarnation] = max(events.get(segment.incarnation, 0), segment.number)
        known = state.get("processes", {})
        if state or events:
            content = JournalContent(
                state.get("owner", owner),
                state.get("firstReceived", 0.0),
                state,
                {name: count for name, count in events.items() if name in known},
            )
            self._table.restore(key, content)


async def _put(directory: LogDirectory, page: JournalPage) -> None:
    """Write new events first, then the state, which never claims missing events."""
    for segment in page.segments.values():
        with suppress(AlreadyStored):  # of the leader before, with the same events
            await directory.put(segment.key, segment.content)
        if segment.replaces and segment.replaces != segment.key:
            await directory.delete(segment.replaces)
    await directory.put(layout.REPORTED_STATE, page.state, replaces=lambda _: True)


def _state(text: bytes, key: RunKey) -> Mapping[str, Any]:
    """Return the state of a run.

    Raises:
        ValueError: It is not one of this run.
    """
    state = orjson.loads(text)
    if not isinstance(state, dict) or state.get("v") != STATE_VERSION:
        raise ValueError(f"not a state of version {STATE_VERSION}")
    if (state.get("namespace"), state.get("runId")) != key:
        raise ValueError(f"is of another run, in namespace {state.get('namespace')!r}")
    return state
