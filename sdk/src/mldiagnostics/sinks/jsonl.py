"""Records as JSON Lines files, or as whole objects in a remote store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.layout import sanitize
from mldiagnostics.locations import local_path
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker
from mldiagnostics.sinks.local_first import LocalFirst
from mldiagnostics.sinks.segments import Segments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.sinks.objects import ObjectJsonlSink

LOCAL_SEGMENT_BYTES = 64 * 1024 * 1024


def maker(url: str) -> SinkMaker:
    """Return the maker for `jsonl:[path or URL]`.

    Without a location the records go to the run's own storage.

    Raises `ConfigurationError` and `MissingExtraError` as `open_store` does.
    """
    root = url.removeprefix("jsonl:")
    if root:
        _check(root)
    return SinkMaker(url.rstrip(":"), lambda origin: _sink(root or origin.storage, sanitize(origin.run_id), origin))


def log_maker(place: str) -> SinkMaker:
    """Return the maker for files directly below a path or URL. Raises as `maker` does."""
    _check(place)
    return SinkMaker(f"jsonl:{place}", lambda origin: _sink(place, "", origin))


class LocalJsonlSink:
    """Appends lines to files on the local disk; readers see each batch at once."""

    batch_policy = BatchPolicy(records=256)
    durable = True

    def __init__(self, directory: Path, origin: Origin) -> None:
        self._segments = Segments(directory, origin, max_bytes=LOCAL_SEGMENT_BYTES)

    def open(self) -> None:
        """Create a file, so that an unwritable disk fails at once."""
        self._segments.open()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch."""
        self._segments.append(batch)

    @property
    def number(self) -> int:
        """The number of its last file."""
        return self._segments.number

    def flush(self) -> None:
        """Do nothing: no records are buffered."""

    def close(self) -> None:
        """Close the file."""
        self._segments.close()


def _check(place: str) -> None:
    if local_path(place) is None:
        from mldiagnostics.spool.queue import check_location  # noqa: PLC0415 - imports stores only where one is used

        check_location(place)


def _sink(place: str, folder: str, origin: Origin) -> Sink:
    def object_sink(root: str, number: int = 0) -> ObjectJsonlSink:
        from mldiagnostics.sinks.objects import ObjectJsonlSink  # noqa: PLC0415 - imports stores only where one is used

        return ObjectJsonlSink(root, folder, origin, number=number)

    local = local_path(place)
    if local is None:
        return object_sink(place)
    direct = LocalJsonlSink(local / folder, origin)
    return LocalFirst(str(local), direct, lambda: object_sink(str(local), direct.number))
