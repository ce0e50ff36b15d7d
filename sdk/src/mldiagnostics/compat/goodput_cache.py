"""The cache of ml-goodput-measurement: payloads and a cursor, in two files.

Several processes may share the files: each addition is made under a lock, and an incomplete line of a killed process is
skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.events.conversion import micros
from mldiagnostics.goodput.snapshots import copies as snapshot_copies
from mldiagnostics.layout import sanitize
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.text.strict_json import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mldiagnostics.compat.goodput_utils import GoodputInfo, StepInfo

__all__ = ["GoodputCache"]


class GoodputCache:
    """Cache of the payloads of a job's log.

    Payloads are in `<job_name>_timeline.jsonl`, the cursor is in `<job_name>_metadata.json`.

    With `gcs_path`, copies are in `<gcs_path>/goodput_cache/`: read at once where the local files are missing or older,
    written by `sync_to_gcs()`. A job name that is not a valid file name is converted to one.
    """

    def __init__(self, job_name: str, cache_dir: str = "/tmp", gcs_path: str | None = None) -> None:  # noqa: S108 - the default of ml-goodput-measurement
        stem = Path(cache_dir) / sanitize(job_name)
        self._timeline = stem.with_name(f"{stem.name}_timeline.jsonl")
        self._metadata = stem.with_name(f"{stem.name}_metadata.json")
        self._gcs_path = gcs_path
        self._step_info: StepInfo | None = None
        self._goodput_info: GoodputInfo | None = None
        if gcs_path:
            snapshot_copies.fetch((self._timeline, self._metadata), gcs_path)

    def update_cached_entries(
        self, entries: Iterable[Mapping[str, Any]], last_entry_info: tuple[datetime | None, str | None]
    ) -> None:
        """Add payloads, and store time and id of the last one.

        A payload that JSON cannot represent is left out with a warning.
        """
        lines = "".join([line for entry in entries if (line := _line(entry))])
        if lines:
            with self._locked() as file:
                file.write(lines.encode())
        self.update_last_entry_info(last_entry_info)

    def update_last_entry_info(self, last_entry_info: tuple[datetime | None, str | None]) -> None:
        """Store time (a datetime or Unix seconds) and id of the last entry."""
        when, name = _cursor(last_entry_info)
        if when is None:
            return
        self._metadata.parent.mkdir(parents=True, exist_ok=True)
        partial = self._metadata.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({"last_entry_timestamp": when.isoformat(), "last_entry_id": name}))
        partial.replace(self._metadata)

    def update_step_info(self, step_info: StepInfo) -> None:
        """Store the step times of the last query."""
        self._step_info = step_info

    def update_goodput_info(self, goodput_info: GoodputInfo) -> None:
        """Store the result of the last query."""
        self._goodput_info = goodput_info

    def get_cached_entries(self) -> list[dict[str, Any]]:
        """Return all payloads, the oldest first; invalid lines are skipped."""
        try:
            lines = self._timeline.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [entry for entry in map(_payload, lines) if entry is not None]

    def get_step_entries(self) -> list[dict[str, Any]]:
        """Return the payloads of steps."""
        return [entry for entry in self.get_cached_entries() if "step_start_time" in entry]

    def get_goodput_info(self) -> GoodputInfo | None:
        """Return the stored result."""
        return self._goodput_info

    def get_step_info(self) -> StepInfo | None:
        """Return the stored step times."""
        return self._step_info

    def get_job_start_time(self) -> datetime | None:
        """Return the first start time of the job (UTC)."""
        return next(self._times("job_start_time"), None)

    def get_job_end_time(self) -> datetime | None:
        """Return the last end time of the job (UTC)."""
        ends = list(self._times("job_end_time"))
        return ends[-1] if ends else None

    def get_last_entry_info(self) -> tuple[datetime, str] | None:
        """Return time and id of the last entry of any process, None if unknown."""
        try:
            metadata = json.loads(self._metadata.read_bytes())
            return datetime.fromisoformat(metadata["last_entry_timestamp"]), metadata["last_entry_id"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def sync_to_gcs(self) -> None:
        """Copy both files to `gcs_path`, if given; failures are logged."""
        if self._gcs_path:
            snapshot_copies.keep([file for file in (self._timeline, self._metadata) if file.exists()], self._gcs_path)

    def clear_cache(self) -> None:
        """Delete both files; copies stay."""
        self._timeline.unlink(missing_ok=True)
        self._metadata.unlink(missing_ok=True)
        self._step_info = self._goodput_info = None

    def is_cache_empty(self) -> bool:
        """Return whether the cache has no payloads."""
        return not self._timeline.exists() or not self._timeline.stat().st_size

    @contextmanager
    def _locked(self) -> Iterator[Any]:
        """Lock the timeline, and open it at its end, at the start of a line."""
        self._timeline.parent.mkdir(parents=True, exist_ok=True)
        with self._timeline.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            yield file

    def _times(self, key: str) -> Iterator[datetime]:
        for entry in self.get_cached_entries():
            if (t := micros(entry.get(key))) is not None:
                yield datetime.fromtimestamp(t / 1e6, timezone.utc)


def _cursor(info: object) -> tuple[datetime | None, str | None]:
    """Return time and id; an invalid time becomes None, with a warning."""
    when, name = info if isinstance(info, tuple | list) and len(info) == 2 else (info, None)
    if when is not None and not isinstance(when, datetime):
        t = micros(when)
        if t is None:
            problem = f"last_entry_info: {shown(info)} has no valid time and is ignored; pass (datetime, id)"
            warn_once("goodput-cursor", problem)
        when = None if t is None else datetime.fromtimestamp(t / 1e6, timezone.utc)
    return when, name if name is None or isinstance(name, str) else shown(name)


def _line(entry: object) -> str:
    """Return the line of a payload, empty with a warning for an invalid one."""
    try:
        return f"{json.dumps(finite(entry), default=str, allow_nan=False)}\n"
    except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when it is inspected
        warn_once("goodput-cache-entry", f"entry of {type(entry).__name__}: left out of the cache; {shown(error)}")
        return ""


def _payload(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
