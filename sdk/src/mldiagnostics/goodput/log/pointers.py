"""Pointers from the two names of a job to its last log on this machine.

A pointer is the file `<root>/goodput-logs/<logger>/<job>.json`; `<root>` is `MLDIAG_SPOOL`, else `mldiagnostics-<uid>`
in the system's directory for temporary files. Only this user's files are used.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics.layout import sanitize
from mldiagnostics.spool.places import roots
from mldiagnostics.spool.private_files import open_own, require_own

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker


FOLDER = "goodput-logs"
_MAX_BYTES = 65_536


def with_pointer(maker: SinkMaker, job_name: str, logger_name: str, url: str) -> SinkMaker:
    """Return a maker of the same sinks that also write the pointer."""
    from mldiagnostics.pipeline.sink import SinkMaker  # noqa: PLC0415 - with the first event

    return SinkMaker(maker.name, lambda origin: _PointingSink(maker, origin, (job_name, logger_name, url)))


def pointed(job_name: str, logger_name: str) -> str | None:
    """Return the log of the last recorder with these names, None without one."""
    file = pointer_to(job_name, logger_name)
    try:
        with open_own(file) as opened:
            url = json.loads(opened.read(_MAX_BYTES)).get("url")
    except (OSError, ValueError, AttributeError):
        return None
    return url if isinstance(url, str) and url else None


def pointer_to(job_name: str, logger_name: str) -> Path:
    """Return the path of a pointer."""
    return _root() / FOLDER / sanitize(logger_name) / f"{sanitize(job_name)}.json"


def _root() -> Path:
    return roots()[0 if os.environ.get("MLDIAG_SPOOL") else -1]  # the last one is the same for every home directory


def _write(job_name: str, logger_name: str, url: str) -> None:
    """Write a pointer atomically. If that fails, readers have to name the log."""
    file = pointer_to(job_name, logger_name)
    partial = file.with_name(f".{os.urandom(8).hex()}.partial")
    with suppress(OSError, ValueError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own(file.parent)
        try:
            partial.write_text(json.dumps({"job_name": job_name, "logger_name": logger_name, "url": url}))
            partial.replace(file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


class _PointingSink:
    """A sink that writes the pointer when it is opened, on its own thread."""

    def __init__(self, maker: SinkMaker, origin: Origin, pointer: tuple[str, str, str]) -> None:
        self._sink: Sink = maker.make(origin)
        self._pointer = pointer

    @property
    def batch_policy(self) -> BatchPolicy:
        return self._sink.batch_policy

    @property
    def durable(self) -> bool:
        return self._sink.durable

    def open(self) -> None:
        _write(*self._pointer)
        self._sink.open()

    def write(self, batch: Sequence[Record]) -> None:
        self._sink.write(batch)

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        self._sink.close()
