"""What was read of a log, kept for the next process: a history, and how far in the log it reaches.

`<cache_dir>/mldiagnostics-<uid>/<hash>.goodput`: one line of JSON, then what `History.dump` writes. The directory is
this user's alone, and only a file of this user's is believed: what a log says can be told again, what stands here is
taken for read.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.history import History
from mldiagnostics.spool.private_files import open_own, require_own

if TYPE_CHECKING:
    from mldiagnostics.goodput.log import Log

__all__ = ["keep", "recall", "snapshot_path"]

SCHEMA_VERSION = 2
_MAX_HEAD_BYTES = 64 * 1024 * 1024


def snapshot_path(cache_dir: str | os.PathLike[str], log: Log, *, job_name: str = "") -> Path:
    """Return where the snapshot of a log is, of all that it tells or of one job."""
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that a process without snapshots never needs

    name = hashlib.sha256(f"{log.name}\0{job_name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Path(cache_dir) / f"mldiagnostics-{os.getuid()}" / f"{name}.goodput"


def keep(path: Path, log: Log, history: History) -> bool:
    """Write the snapshot, whole or not at all; false, with a complaint, if the disk does not take it."""
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
        warn_once("goodput-snapshot", f"what was read of {log.name} is not kept for the next process: {error}")
        with contextlib.suppress(OSError):
            partial.unlink()
        return False
    return True


def recall(path: Path, log: Log) -> History | None:
    """Return what was read before, with the log behind it; None if there is nothing that can be believed."""
    try:
        with open_own(path) as file:
            head = json.loads(file.readline(_MAX_HEAD_BYTES))
            if not isinstance(head, dict) or head.get("v") != SCHEMA_VERSION or head.get("log") != log.name:
                raise ValueError("it is of another version or of another log")  # noqa: TRY301 - one way out
            history = History.load(file)
            log.resume(head["position"])
            if isinstance(log.jobs, set):
                log.jobs.update(map(str, head["jobs"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        warn_once("goodput-snapshot", f"{log.name} is read from its beginning, {path} is no use: {error}")
        return None
    return history
