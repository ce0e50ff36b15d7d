"""A sink on the local disk that goes on in the spool when its place cannot be written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mldiagnostics.pipeline.records import Record

RETRY_S = 60.0
"""How often what waits in the spool is offered to the place, which may be writable by then."""


class SpooledFileSink(Sink, Protocol):
    """A sink that collects its files in the spool."""

    @property
    def spool(self) -> Path:
        """The directory where its files wait. Raises `SinkUnavailable` if there is none."""


class LocalFirst:
    """Writes by `direct` as long as the disk takes it, and from then on by what `make_spooled` returns.

    A process that has begun to spool does so to its end: its closed files are moved to `place` each minute, once that
    can be written. If no other disk can hold what waits, the place is tried again.
    """

    durable = True

    def __init__(self, place: str, direct: Sink, make_spooled: Callable[[], SpooledFileSink]) -> None:
        self._place = place
        self._direct = direct
        self._make_spooled = make_spooled
        self._spooled: SpooledFileSink | None = None

    @property
    def pace(self) -> BatchPolicy:
        """The direct sink's, with a look each minute whether the place can be written again."""
        return replace(self._direct.pace, flush_s=RETRY_S)

    def open(self) -> None:
        """Begin a file, in the place or in the spool. Raises `SinkUnavailable` if no disk takes it."""
        try:
            self._direct.open()
        except SinkUnavailable as error:
            self._spool(error)
        else:
            self._upload_what_waits()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch. Raises `SinkUnavailable` if no disk takes it, and `SpoolFull` if too much waits."""
        if self._spooled is None:
            try:
                self._direct.write(batch)
            except SinkUnavailable as error:
                self._spool(error).write(batch)
        else:
            self._spooled.write(batch)

    def flush(self) -> None:
        """Move what waits to the place. Raises `SinkUnavailable` while that takes nothing."""
        if self._spooled is not None:
            self._spooled.flush()

    def close(self) -> None:
        """Close the files; what still waits is left to the next process."""
        self._direct.close()
        if self._spooled is not None:
            self._spooled.close()

    def _upload_what_waits(self) -> None:
        from mldiagnostics.spool.places import has_any  # noqa: PLC0415 - in the sink's own thread

        if has_any(self._place):
            from mldiagnostics.spool import background  # noqa: PLC0415 - loaded where it is needed

            background.start_upload(self._place)

    def _spool(self, problem: SinkUnavailable) -> Sink:
        from mldiagnostics.spool.storage import report_spooling  # noqa: PLC0415 - loaded where it is needed

        spooled = self._make_spooled()
        try:
            spooled.open()
        except SinkUnavailable as error:
            raise SinkUnavailable(f"{problem}; and {error}") from problem
        report_spooling(self._place, spooled.spool, str(problem))
        self._spooled = spooled
        return spooled
