"""Writes of start-up and causes beside the files of runs, for reports of goodput."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreError
from mldiagnostics.goodput.report.cluster_record import MAX_BYTES
from mldiagnostics_api.runs.cluster_record import cluster_record, last_change, merged_record

from mldiagnostics_operator.runs.run_directory import run_directory
from mldiagnostics_operator.runs.user_json import parse_user_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.storage import LogDirectory, Storage

_log: Final = logging.getLogger(__name__)

PAUSE_S: Final = 5.0
"""Pause between two rounds of writes; a run is written once in a round, however often it changes."""
WRITE_S: Final = 60.0
"""Time limit of a write: a volume may hang."""
LONGEST_PAUSE_S: Final = 600.0
"""Longest pause before a write that failed is repeated."""
RECENT: Final = timedelta(hours=1)
"""A leader before may have left a change unwritten for as long as this."""
MOST_DELETED: Final = 1024
_KEY: Final = f"{layout.REPORTED_DIR}/{layout.CLUSTER_RECORD}"


class ClusterRecords:
    """Writes `reported/cluster.json` of runs whose attempts changed.

    Args:
        storage: Opens directories.
        policy: The default storage, and the storage that each namespace may use.
        clock: Wall clock.
    """

    def __init__(self, storage: Storage, policy: Policy, clock: Clock) -> None:
        self._storage = storage
        self._policy = policy
        self._clock = clock
        self._waiting: dict[ObjectKey, Run] = {}
        self._repeats: dict[ObjectKey, tuple[int, asyncio.TimerHandle]] = {}
        """Writes in a row that failed, and the time of the next one."""
        self._deleted: deque[str] = deque(maxlen=MOST_DELETED)
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
        if has_storage and run.workload is not None and run.run_id and run.meta.uid not in self._deleted:
            self._waiting[run.key] = run
            self._woken.set()

    def note_first(self, run: Run) -> None:
        """Write the record of a run that is new to this leader.

        One before may not have written the last change.
        """
        changed = last_change(run.status)
        if changed is not None and self._clock() - changed < RECENT:
            self.note(run)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            for key in tuple(self._waiting):
                async with self._turn:
                    if key in self._waiting:
                        await self._write(self._waiting.pop(key))
            await asyncio.sleep(PAUSE_S)

    async def forget(self, run: Run) -> None:
        """Write nothing more about a run whose files are deleted now."""
        self._deleted.append(run.meta.uid)
        self._waiting.pop(run.key, None)
        self._cancel_repeat(run)
        async with self._turn:  # after a write in progress
            pass

    async def _write(self, run: Run) -> None:
        try:
            record = cluster_record(run.run_id, run.meta.namespace, run.status)
            location = run_directory(self._policy, run.meta.namespace, run.run_id, run.storage_location)
            if record is None or location is None:
                return
            async with asyncio.timeout(WRITE_S):
                directory = self._storage.directory(location)
                content = orjson.dumps(merged_record(await _earlier(directory), record))
                await directory.put(_KEY, content, replaces=lambda _: True)
        except ValueError as error:  # of the location
            self._warn(run, error)
        except TimeoutError:
            self._repeat(run, f"the storage did not answer in {WRITE_S:.0f} s")
        except (StoreError, OSError) as error:
            self._repeat(run, error)
        else:
            self._cancel_repeat(run)
            self._written(run.report_key)

    def _repeat(self, run: Run, error: object) -> None:
        """Write again after a pause, which grows from failure to failure."""
        failures = self._cancel_repeat(run)
        if run.deleted:  # nothing would end the repetitions
            self._warn(run, error)
            return
        if not failures:
            self._warn(run, f"{error}; trying again")
        pause_s = min(PAUSE_S * 2 ** min(failures, 16), LONGEST_PAUSE_S)
        timer = asyncio.get_running_loop().call_later(pause_s, self.note, run)
        self._repeats[run.key] = failures + 1, timer

    def _cancel_repeat(self, run: Run) -> int:
        """Return the number of writes in a row that failed."""
        failures, timer = self._repeats.pop(run.key, (0, None))
        if timer is not None:
            timer.cancel()
        return failures

    def _warn(self, run: Run, error: object) -> None:
        _log.warning(
            "Start-up and causes of run %(run)s are not in its files: %(error)s", {"run": run.key.title, "error": error}
        )


async def _earlier(directory: LogDirectory) -> Mapping[str, Any]:
    """Return the record of a former leader; empty without a valid one."""
    with suppress(NotStored, ValueError):
        record = parse_user_json(await directory.load(_KEY, max_bytes=MAX_BYTES))
        if isinstance(record, dict):
            return record
    return {}
