"""Records as lines on standard output, for a log collector or a look at the terminal."""

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
    """Writes to the process's file descriptor 1, past `sys.stdout`, whose lock a print statement would wait for.

    Each record is one write, so that no line is cut by another's as long as it fits a pipe's 4 KiB.
    """

    pace = BatchPolicy()
    durable = False

    def open(self) -> None:
        """Do nothing: it is open."""

    def write(self, batch: Sequence[Record]) -> None:
        """Write one line for each record, but not for steps and the like; waits while nobody reads."""
        turns = GilYielder()
        for record in batch:
            if is_goodput(record):
                continue
            try:
                _write(encode(record).encode())
            except OSError as error:
                raise SinkRefused(f"standard output is closed: {error.strerror}") from error
            turns()

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Leave it open: it is the process's."""


def _write(line: bytes) -> None:
    while line:
        select.select([], [_STDOUT], [])  # somebody may have set it non-blocking
        with suppress(BlockingIOError):
            line = line[os.write(_STDOUT, line) :]
