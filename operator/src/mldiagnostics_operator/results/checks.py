"""Whether a namespace may read a directory, by the records in it."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics_api import results

from mldiagnostics_operator.results.limits import CHECKED_S, MAX_CHECKED
from mldiagnostics_operator.results.volume import read_part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics_api.captures.location import Location


class DirectoryChecks:
    """Decides which directories a namespace may read, and keeps that for a moment.

    Args:
        root: Mount point of the volume.
        clock: Seconds that never go back.
    """

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self._root: Final = root
        self._clock = clock
        self._until: OrderedDict[tuple[str, Location], float] = OrderedDict()
        self._turn = Lock()

    def is_readable(self, directory: Location, namespace: str) -> bool:
        """Return whether a directory is that of a run or session of the namespace."""
        key = (namespace, directory)
        with self._turn:
            if self._clock() < self._until.get(key, 0.0):
                return True
        if not self._is_named(directory, namespace):
            return False
        with self._turn:
            self._until[key] = self._clock() + CHECKED_S
            self._until.move_to_end(key)
            if len(self._until) > MAX_CHECKED:
                self._until.popitem(last=False)
        return True

    def _is_named(self, directory: Location, namespace: str) -> bool:
        if results.session_of(directory):
            record = self._record(directory, layout.CAPTURE_RECORD)
            if results.session_is_of_namespace(record, namespace):
                return True
        run = results.run_directory_of(directory)
        if run is None:
            return False
        records = [record for key in results.RUN_RECORDS if (record := self._record(run, key)) is not _ABSENT]
        return results.run_is_of_namespace(run, records, namespace)

    def _record(self, directory: Location, key: str) -> object:
        with suppress(OSError):
            path = (*directory.segments, *key.split("/"))
            part = read_part(self._root, path, 0, results.MAX_RECORD_BYTES)
            return results.parsed_record(key, part.content)
        return _ABSENT


_ABSENT: Final = object()
"""A record that does not exist, other than one that cannot be read."""
