"""Records as JSON Lines files, or as whole objects in a remote store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.layout import sanitize
from mldiagnostics.locations import local_path
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker
from mldiagnostics.sinks.local_first import LocalFirst, LocalSink
from mldiagnostics.sinks.segments import Segments

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.sinks.objects import ObjectSink

LOCAL_SEGMENT_BYTES = 64 * 1024 * 1024
OBJECT_BYTES = 8 * 1024 * 1024
_BATCH_RECORDS = 256


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


def _check(place: str) -> None:
    if local_path(place) is None:
        from mldiagnostics.spool.queue import check_location  # noqa: PLC0415 - imports stores only where one is used

        check_location(place)


def _sink(place: str, folder: str, origin: Origin) -> Sink:
    def object_sink(root: str, number: int = 0) -> ObjectSink:
        from mldiagnostics.sinks.objects import ObjectSink  # noqa: PLC0415 - imports stores only where one is used

        def files(top: Path) -> Segments:
            return Segments(top / folder, origin, max_bytes=OBJECT_BYTES, number=number)

        return ObjectSink(root, origin, files, records=_BATCH_RECORDS)

    local = local_path(place)
    if local is None:
        return object_sink(place)
    segments = Segments(local / folder, origin, max_bytes=LOCAL_SEGMENT_BYTES)
    direct = LocalSink(segments, BatchPolicy(records=_BATCH_RECORDS))
    return LocalFirst(str(local), direct, lambda: object_sink(str(local), segments.number))
