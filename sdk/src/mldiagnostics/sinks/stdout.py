"""Records as JSON lines on standard output, for a log collector or a terminal."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import encode, is_goodput
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.pipeline.records import Record

_STDOUT = 1


def maker(_: str) -> SinkMaker:
    """Return the maker for `stdout:`."""
    return SinkMaker("stdout", lambda _: StdoutSink())


class StdoutSink:
    """Writes to file descriptor 1, so that it never blocks `print` by its lock.

    Each record is one write, so lines of up to a pipe's 4 KiB are not mixed with others.
    """

    batch_policy = BatchPolicy()
    durable = False

    def open(self) -> None:
        """Do nothing: standard output is open."""

    def write(self, batch: Sequence[Record]) -> None:
        """Write one line per record except goodput's; waits while the pipe is full."""
        yield_gil = GilYielder()
        for record in batch:
            if is_goodput(record):
                continue
            try:
                _write(encode(record).encode())
            except OSError as error:
                raise SinkRefused(f"standard output is closed: {error.strerror}") from error
            yield_gil()

    def flush(self) -> None:
        """Do nothing: no records are buffered."""

    def close(self) -> None:
        """Do nothing: standard output belongs to the process."""


def _write(line: bytes) -> None:
    while line:
        select.select([], [_STDOUT], [])  # the program may have made it non-blocking
        with suppress(BlockingIOError):
            line = line[os.write(_STDOUT, line) :]
