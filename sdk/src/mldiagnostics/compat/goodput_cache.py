"""The cache of ml-goodput-measurement, for programs that use it: a log's payloads and a cursor, in two files.

Nothing else here depends on it. Many processes may share the files: each addition is made under a lock, and a line that
a killed process tore is skipped.
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
from mldiagnostics.goodput import snapshot_copies
from mldiagnostics.goodput.payload import micros
from mldiagnostics.layout import sanitize
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.text.strict_json import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mldiagnostics.compat.goodput_utils import GoodputInfo, StepInfo

__all__ = ["GoodputCache"]


class GoodputCache:
    """Payloads in `<cache_dir>/<job_name>_timeline.jsonl`, the cursor in `<job_name>_metadata.json` beside it.

    With `gcs_path`, copies are in `<gcs_path>/goodput_cache/`: read now where the local files are missing or older,
    written by `sync_to_gcs()`. A job's name that is no name of a file is made one.
    """

    def __init__(self, job_name: str, cache_dir: str = "/tmp", gcs_path: str | None = None) -> None:  # noqa: S108 - the peer's default
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
        """Add payloads, and remember the time and id of the last one; one that JSON cannot say is left out."""
        lines = "".join([line for entry in entries if (line := _line(entry))])
        if lines:
            with self._locked() as file:
                file.write(lines.encode())
        self.update_last_entry_info(last_entry_info)

    def update_last_entry_info(self, last_entry_info: tuple[datetime | None, str | None]) -> None:
        """Remember the time (a datetime, or POSIX seconds) and id of the last entry that was read."""
        when, name = _cursor(last_entry_info)
        if when is None:
            return
        self._metadata.parent.mkdir(parents=True, exist_ok=True)
        partial = self._metadata.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({"last_entry_timestamp": when.isoformat(), "last_entry_id": name}))
        partial.replace(self._metadata)

    def update_step_info(self, step_info: StepInfo) -> None:
        """Remember the step times of the last query."""
        self._step_info = step_info

    def update_goodput_info(self, goodput_info: GoodputInfo) -> None:
        """Remember the result of the last query."""
        self._goodput_info = goodput_info

    def get_cached_entries(self) -> list[dict[str, Any]]:
        """Return all payloads, the oldest first; lines that are none are left out."""
        try:
            lines = self._timeline.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [entry for entry in map(_payload, lines) if entry is not None]

    def get_step_entries(self) -> list[dict[str, Any]]:
        """Return the payloads that tell of steps."""
        return [entry for entry in self.get_cached_entries() if "step_start_time" in entry]

    def get_goodput_info(self) -> GoodputInfo | None:
        """Return the remembered result."""
        return self._goodput_info

    def get_step_info(self) -> StepInfo | None:
        """Return the remembered step times."""
        return self._step_info

    def get_job_start_time(self) -> datetime | None:
        """Return when the job started first (UTC)."""
        return next(self._moments("job_start_time"), None)

    def get_job_end_time(self) -> datetime | None:
        """Return when the job ended last (UTC)."""
        ends = list(self._moments("job_end_time"))
        return ends[-1] if ends else None

    def get_last_entry_info(self) -> tuple[datetime, str] | None:
        """Return time and id of the last entry, also of an earlier process; None if that is not known."""
        try:
            known = json.loads(self._metadata.read_bytes())
            return datetime.fromisoformat(known["last_entry_timestamp"]), known["last_entry_id"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def sync_to_gcs(self) -> None:
        """Copy both files to `gcs_path`, if there is one; what fails is only told."""
        if self._gcs_path:
            snapshot_copies.keep([file for file in (self._timeline, self._metadata) if file.exists()], self._gcs_path)

    def clear_cache(self) -> None:
        """Forget everything; copies stay."""
        self._timeline.unlink(missing_ok=True)
        self._metadata.unlink(missing_ok=True)
        self._step_info = self._goodput_info = None

    def is_cache_empty(self) -> bool:
        """Tell whether no payload is kept."""
        return not self._timeline.exists() or not self._timeline.stat().st_size

    @contextmanager
    def _locked(self) -> Iterator[Any]:
        """Give the timeline to one process at a time, at its end and at the begin of a line."""
        self._timeline.parent.mkdir(parents=True, exist_ok=True)
        with self._timeline.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            yield file

    def _moments(self, key: str) -> Iterator[datetime]:
        for entry in self.get_cached_entries():
            if (t := micros(entry.get(key))) is not None:
                yield datetime.fromtimestamp(t / 1e6, timezone.utc)


def _cursor(info: object) -> tuple[datetime | None, str | None]:
    """Return time and id, the time None where there is none; with a complaint where it is not a moment."""
    when, name = info if isinstance(info, tuple | list) and len(info) == 2 else (info, None)
    if when is not None and not isinstance(when, datetime):
        t = micros(when)
        if t is None:
            said = f"last_entry_info: {shown(info)} has no moment, it is ignored; give (datetime, id)"
            warn_once("goodput-cursor", said)
        when = None if t is None else datetime.fromtimestamp(t / 1e6, timezone.utc)
    return when, name if name is None or isinstance(name, str) else shown(name)


def _line(entry: object) -> str:
    """Return the line of a payload, empty with a complaint if there cannot be one."""
    try:
        return f"{json.dumps(finite(entry), default=str, allow_nan=False)}\n"
    except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when it is looked at
        warn_once("goodput-cache-entry", f"entry of {type(entry).__name__}: left out of the cache; {shown(error)}")
        return ""


def _payload(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
