"""Logs in a bucket: whole objects, each read once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics.errors import LogMissing, LogUnreadable, NotStored, StoreError
from mldiagnostics.goodput.log.blocks import LISTINGS, whole_lines
from mldiagnostics.goodput.log.folder import SUFFIX
from mldiagnostics.goodput.log.lines import LineParser
from mldiagnostics.layout import RECORDS_DIR, RUN_RECORD
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from datetime import datetime

    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.goodput.log.lines import LoggedPayload
    from mldiagnostics.store import Entry, Store


class StoredLog:
    """The log at the URL of a bucket: the objects in its `records`, or one object.

    Objects never change, so each is read once.
    """

    def __init__(self, url: str, *, job_name: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._job_name = job_name
        self._taken: set[str] = set()
        self.jobs: set[str] = set()

    @property
    def name(self) -> str:
        """The URL."""
        return self._url

    def read_new(self, history: EventListener, now: datetime) -> None:  # noqa: ARG002 - all objects are read
        """See `Log.read_new`."""
        self._feed(history)
        while history.begin_again():
            self._taken = set()
            self._feed(history)

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:  # noqa: ARG002 - as above
        """See `Log.payloads`."""
        for lines, block in self._new_blocks(set()):
            yield from lines.payloads(block)

    def exists(self) -> bool:
        """See `Log.exists`."""
        try:
            self._keys()
        except LogMissing:
            return False
        except StoreError as error:
            raise LogUnreadable(f"{self._url}: cannot read the goodput log: {error}") from error
        return True

    def position(self) -> dict[str, object]:
        """See `Log.position`."""
        return {"objects": sorted(self._taken)}

    def resume(self, position: dict[str, object]) -> None:
        """See `Log.resume`."""
        taken = position.get("objects")
        if not isinstance(taken, list) or not all(isinstance(key, str) for key in taken):
            raise ValueError(f"{position!r}: not a list of objects")
        self._taken = set(taken)

    def _feed(self, history: EventListener) -> None:
        for lines, block in self._new_blocks(self._taken):
            lines.feed(block, history)

    def _new_blocks(self, taken: set[str]) -> Iterator[tuple[LineParser, bytes]]:
        """Yield the lines of objects that are not in `taken`, the oldest first."""
        gone = set[str]()
        try:
            for _ in range(LISTINGS):
                gone = yield from self._listed_blocks(taken)
                if not gone:
                    return
        except StoreError as error:
            raise LogUnreadable(f"{self._url}: cannot read the goodput log: {error}") from error
        raise LogUnreadable(f"{self._url}: cannot read the goodput log: {min(gone)}: no such object")

    def _listed_blocks(self, taken: set[str]) -> Generator[tuple[LineParser, bytes], None, set[str]]:
        """Yield the same of one listing; return the objects that are gone since.

        Longer ones have replaced them then.
        """
        store, keys, single = self._keys()
        of_run = not single and _has(store, RUN_RECORD)  # all events are of that run, with any job name
        for key in keys:
            if key not in taken:
                lines = LineParser() if of_run else LineParser(job_name=self._job_name, jobs=self.jobs)
                with suppress(NotStored), store.open(key) as file:
                    for block, _ in whole_lines(file, ended=True):
                        yield lines, block
                    taken.add(key)
        return set(keys) - taken

    def _keys(self) -> tuple[Store, list[str], bool]:
        """Return the store, the keys, and whether the URL names one object.

        Raises `LogMissing` and `StoreError`.
        """
        root, _, last = self._url.rpartition("/")
        store = open_store(self._url)
        keys = [entry.key for entry in _objects(store)]
        if not keys and last.endswith(SUFFIX):  # a recorder can have such a name too
            return open_store(root), [last], True
        if not keys:
            raise LogMissing(f"{self._url}: no goodput log; it has no {RECORDS_DIR}/*{SUFFIX}")
        return store, keys, False


def _objects(store: Store) -> list[Entry]:
    entries = [entry for entry in store.list(RECORDS_DIR) if entry.key.endswith(SUFFIX)]
    entries = entries or [entry for entry in store.list() if entry.key.endswith(SUFFIX) and "/" not in entry.key]
    return sorted(entries, key=lambda entry: (entry.modified, entry.key))


def _has(store: Store, key: str) -> bool:
    try:
        store.open(key).close()
    except NotStored:
        return False
    return True
