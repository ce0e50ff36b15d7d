"""Sinks on the local disk; one uses the spool if its path is not writable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.sinks.objects import BatchFiles, ObjectSink

RETRY_S = 60.0
"""How often spooled files are moved to the path, if it is writable by then."""


class LocalSink:
    """Appends batches to local files; readers see each at once."""

    durable = True

    def __init__(self, files: BatchFiles, batch_policy: BatchPolicy) -> None:
        self._files = files
        self.batch_policy = batch_policy

    def open(self) -> None:
        """Create a file, so that an unwritable disk fails at once."""
        self._files.open()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch."""
        self._files.append(batch)

    def flush(self) -> None:
        """Do nothing: no records are buffered."""

    def close(self) -> None:
        """Close the file."""
        self._files.close()


class LocalFirst:
    """Writes to the `direct` sink until it fails, then to the one of `make_spooled`.

    A process that has started to spool does so until it ends: its closed files are moved to `place` each minute, once
    that is writable. If no other disk can hold the records, `place` is tried again.
    """

    durable = True

    def __init__(self, place: str, direct: Sink, make_spooled: Callable[[], ObjectSink]) -> None:
        self._place = place
        self._direct = direct
        self._make_spooled = make_spooled
        self._spooled: ObjectSink | None = None

    @property
    def batch_policy(self) -> BatchPolicy:
        """The direct sink's, with a flush each minute that retries the path."""
        return replace(self._direct.batch_policy, flush_s=RETRY_S)

    def open(self) -> None:
        """Create a file at the path or in the spool. Raises `SinkUnavailable`."""
        try:
            self._direct.open()
        except SinkUnavailable as error:
            self._start_spooling(error)
        else:
            self._upload_waiting()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch. Raises `SinkUnavailable` or `SpoolFull`."""
        if self._spooled is None:
            try:
                self._direct.write(batch)
            except SinkUnavailable as error:
                self._start_spooling(error).write(batch)
        else:
            self._spooled.write(batch)

    def flush(self) -> None:
        """Move spooled files to the path. Raises `SinkUnavailable` if that fails."""
        if self._spooled is not None:
            self._spooled.flush()

    def close(self) -> None:
        """Close the files; waiting ones are left to the next process."""
        self._direct.close()
        if self._spooled is not None:
            self._spooled.close()

    def _upload_waiting(self) -> None:
        from mldiagnostics.spool.places import has_any  # noqa: PLC0415 - imported by the sink's own thread

        if has_any(self._place):
            from mldiagnostics.spool import background  # noqa: PLC0415 - imports stores only where one is used

            background.start_upload(self._place)

    def _start_spooling(self, problem: SinkUnavailable) -> Sink:
        from mldiagnostics.spool.destination import report_spooling  # noqa: PLC0415 - imports stores only where one is used

        spooled = self._make_spooled()
        try:
            spooled.open()
        except SinkUnavailable as error:
            raise SinkUnavailable(f"{problem}; the spool failed too: {error}") from problem
        report_spooling(self._place, spooled.spool, str(problem))
        self._spooled = spooled
        return spooled
