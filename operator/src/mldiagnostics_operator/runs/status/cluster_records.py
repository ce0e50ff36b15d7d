"""Writes of start-up and causes beside the files of runs, for reports of goodput."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreError
from mldiagnostics.goodput.report.cluster_record import MAX_BYTES
from mldiagnostics_api.runs.cluster_record import cluster_record, merged_record

from mldiagnostics_operator.runs.run_directory import run_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.storage import LogDirectory, Storage

_log: Final = logging.getLogger(__name__)

PAUSE_S: Final = 5.0
"""Pause between two rounds of writes; a run is written once in a round, however often it changes."""
MOST_WAITING: Final = 1024
_KEY: Final = f"{layout.REPORTED_DIR}/{layout.CLUSTER_RECORD}"


class ClusterRecords:
    """Writes `reported/cluster.json` of runs whose attempts changed.

    Args:
        storage: Opens directories.
        policy: The default storage, and the storage that each namespace may use.
    """

    def __init__(self, storage: Storage, policy: Policy) -> None:
        self._storage = storage
        self._policy = policy
        self._waiting: dict[ObjectKey, tuple[Run, Mapping[str, Any]]] = {}
        self._deleted: deque[str] = deque(maxlen=MOST_WAITING)
        """The last runs whose files were deleted, by the uids of their objects."""
        self._turn = asyncio.Lock()
        """Held by the write in progress."""
        self._written: Callable[[RunKey], None] = lambda _: None
        self._woken = asyncio.Event()

    def subscribe(self, written: Callable[[RunKey], None]) -> None:
        """Pass each run whose record was written to a function; the last one counts."""
        self._written = written

    def note(self, run: Run) -> None:
        """Write the record of a run soon."""
        has_storage = run.storage_location is not None or self._policy.default_storage is not None
        is_followed = (
            has_storage and run.workload is not None and bool(run.run_id) and run.meta.uid not in self._deleted
        )
        record = cluster_record(run.run_id, run.meta.namespace, run.status) if is_followed else None
        if record is not None and (run.key in self._waiting or len(self._waiting) < MOST_WAITING):
            self._waiting[run.key] = run, record
            self._woken.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            for key in tuple(self._waiting):
                async with self._turn:
                    if key in self._waiting:
                        await self._write(*self._waiting.pop(key))
            await asyncio.sleep(PAUSE_S)

    async def forget(self, run: Run) -> None:
        """Write nothing more about a run whose files are deleted now."""
        self._deleted.append(run.meta.uid)
        self._waiting.pop(run.key, None)
        async with self._turn:  # after a write in progress
            pass

    async def _write(self, run: Run, record: Mapping[str, Any]) -> None:
        try:
            location = run_directory(self._policy, run.meta.namespace, run.run_id, run.storage_location)
            if location is None:
                return
            directory = self._storage.directory(location)
            content = orjson.dumps(merged_record(await _earlier(directory), record))
            await directory.put(_KEY, content, replaces=lambda _: True)
            self._written(run.report_key)
        except (StoreError, OSError, ValueError) as error:
            _log.warning(
                "Start-up and causes of run %(run)s are not in its files: %(error)s",
                {"run": run.key.title, "error": error},
            )


async def _earlier(directory: LogDirectory) -> Mapping[str, Any]:
    """Return the record of a former leader; empty without a valid one."""
    with suppress(NotStored, ValueError):
        record = orjson.loads(await directory.load(_KEY, max_bytes=MAX_BYTES))
        if isinstance(record, dict):
            return record
    return {}
