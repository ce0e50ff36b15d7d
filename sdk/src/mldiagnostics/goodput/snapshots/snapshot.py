"""Snapshots: a history and the position in the log up to which it was read.

A snapshot is the file `<cache_dir>/mldiagnostics-<uid>/<hash>.goodput`: one line of JSON, then the output of
`History.dump`. Only this user can write the directory, and only this user's files are used: a wrong snapshot would hide
events of the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.spool.private_files import open_own, require_own

if TYPE_CHECKING:
    from mldiagnostics.goodput.log import Log


SCHEMA_VERSION = 3
_MAX_HEAD_BYTES = 64 * 1024 * 1024


def snapshot_path(cache_dir: str | os.PathLike[str], log: Log, *, job_name: str = "") -> Path:
    """Return the path of a log's snapshot, of one job or of all."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, 4 MiB that only snapshots need

    name = hashlib.sha256(f"{log.name}\0{job_name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Path(cache_dir) / f"mldiagnostics-{os.getuid()}" / f"{name}.goodput"


def keep(path: Path, log: Log, history: History) -> bool:
    """Write the snapshot atomically; return false, with a warning, if that fails."""
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own(path.parent)
        head = {"v": SCHEMA_VERSION, "log": log.name, "position": log.position(), "jobs": sorted(log.jobs)}
        with partial.open("xb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            history.dump(file)
        partial.replace(path)
    except (OSError, ValueError) as error:
        warn_once(
            "goodput-snapshot",
            f"{path}: cannot store the history of {log.name}, the next process reads the log again: {error}",
        )
        with contextlib.suppress(OSError):
            partial.unlink()
        return False
    return True


def recall(path: Path, log: Log) -> History | None:
    """Return a stored history and move the log to its position, if it is valid."""
    try:
        with open_own(path) as file:
            head = json.loads(file.readline(_MAX_HEAD_BYTES))
            if not isinstance(head, dict) or head.get("v") != SCHEMA_VERSION or head.get("log") != log.name:
                raise ValueError("written by another version or for another log")  # noqa: TRY301 - one way out
            history = History.load(file)
            log.resume(head["position"])
            if isinstance(log.jobs, set):
                log.jobs.update(map(str, head["jobs"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        warn_once("goodput-snapshot", f"{path}: invalid snapshot, {log.name} is read from its beginning: {error}")
        return None
    return history
