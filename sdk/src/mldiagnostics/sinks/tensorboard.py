"""Metrics as TensorBoard's event files: on a local path as they come, elsewhere by whole objects.

A process's files are in `<root>/<run's name>-<first 10 digits of its id>/rank<rank>`, which TensorBoard shows as one
of its runs. A tag is the metric's name, with labels `name/key=value,key=value`, and for a series with one number per
device `name/device=0` and so on. A metric without a step counts its own. Records of other kinds have no place there.
File format: TFRecord of `tensorboard.compat.proto.event_pb2.Event`, version 2, as `tf.summary` writes it.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.layout import sanitize
from mldiagnostics.locations import local_path
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker, SinkUnavailable
from mldiagnostics.sinks.event_frames import frames, scalar_event, version_event
from mldiagnostics.sinks.local_first import LocalFirst

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.spool.queue import UploadQueue

FLUSH_S = 60.0
"""How old the oldest record in an object that is still open may be."""

MAX_COUNTERS = 10_000
"""How many tags have counters of their own at most; steps of further ones stay 0."""

_MAX_INT64 = 2**63 - 1


def maker(url: str, *, folder: str | None = None) -> SinkMaker:
    """Return the maker for `tensorboard:<path or URL>`, the directory that TensorBoard is started with.

    `folder` is where the files are below it, instead of a folder for each run and process. Raises `ConfigurationError`
    and `MissingExtraError`.
    """
    root = url.removeprefix("tensorboard:")
    if not root:
        raise ConfigurationError(f"{url!r} names no directory: write tensorboard:/path or tensorboard:gs://bucket/logs")
    require("tensorboard", extra="tensorboard", needed_for=url)
    local = local_path(root)
    if local is None:
        from mldiagnostics.spool.queue import check_place  # noqa: PLC0415 - stores load only where one is used

        check_place(root)

    def make(origin: Origin) -> Sink:
        inner = _folder(origin) if folder is None else folder
        if local is None:
            return ObjectTensorBoardSink(root, inner, origin)
        events = LocalTensorBoardSink(local / inner, origin)
        return LocalFirst(str(local), events, lambda: ObjectTensorBoardSink(str(local), inner, origin))

    return SinkMaker(url, make)


class LocalTensorBoardSink:
    """Appends events to one file on the local disk; they are there for TensorBoard with each batch."""

    pace = BatchPolicy(records=1024)
    durable = True

    def __init__(self, folder: Path, origin: Origin) -> None:
        self._file = EventFile(folder, origin)

    def open(self) -> None:
        """Begin the file, so that a disk that cannot be written is known at once."""
        self._file.open()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch's metrics."""
        self._file.append(batch)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ObjectTensorBoardSink:
    """Collects events in files on the local disk and puts each, once it is closed, into a store as one object."""

    pace = BatchPolicy(records=1024, flush_s=FLUSH_S)
    durable = True

    def __init__(self, root: str, folder: str, origin: Origin) -> None:
        from mldiagnostics.spool.queue import UploadQueue  # noqa: PLC0415 - stores load only where one is used

        self._queue: UploadQueue = UploadQueue(root, origin, part="tensorboard")
        self._folder, self._origin = folder, origin
        self._file: EventFile | None = None

    @property
    def spool(self) -> Path:
        """The directory where its files wait. Raises `SinkUnavailable` if there is none."""
        return self._queue.place

    def open(self) -> None:
        """Find room on the local disk."""
        if self._file is None:
            self._file = EventFile(self._queue.files / self._folder, self._origin)

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch's metrics to a local file. Raises `SpoolFull` when too much waits for the store."""
        self._queue.require_room()
        if self._file is not None:
            self._file.append(batch)

    def flush(self) -> None:
        """Close the file and put all that waits into the store."""
        if self._file is not None:
            self._file.close()
        self._queue.deliver()

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._file is not None:
            self._file.close()
        self._queue.close()


class EventFile:
    """The event files of one process, one after the other; a batch is in the file, whole, or it is not at all."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self._folder = folder
        self._origin = origin
        self._file: Any = None
        self._number = 0
        self._steps: dict[str, Iterator[int]] = {}

    def open(self) -> None:
        """Begin a file unless one is open. Raises `SinkUnavailable` if the disk does not take it."""
        if self._file is not None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path().open("xb", buffering=0)
        except OSError as error:
            raise SinkUnavailable(f"{self._folder}: {error.strerror}: choose another place for event files") from error
        self._write(frames([version_event(time.time())]))

    def append(self, batch: Sequence[Record]) -> None:
        """Append the batch's metrics. Raises `SinkUnavailable` if the disk does not take them, now."""
        self.open()
        turns = GilYielder()
        events = []
        for record in batch:
            if record.kind == "metric" and record.value is not None:
                events.append(self._event(record))
                turns()
        self._write(frames(events))

    def close(self) -> None:
        """Close the file; the next batch begins another."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _event(self, record: Record) -> bytes:
        step = self._counted(tag_of(record)) if record.step is None else max(-_MAX_INT64, min(record.step, _MAX_INT64))
        return scalar_event(record.t, step, tagged(record))

    def _counted(self, tag: str) -> int:
        if tag not in self._steps and len(self._steps) >= MAX_COUNTERS:
            return 0
        return next(self._steps.setdefault(tag, count()))

    def _path(self) -> Path:
        """Return a path by whose name TensorBoard reads the files of a folder in the order they were begun."""
        self._number += 1
        stamp = f"{int(time.time()):010}"
        return self._folder / f"events.out.tfevents.{stamp}.{self._origin.incarnation}.{self._number:05}"

    def _write(self, data: bytes) -> None:
        before = self._file.tell()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._file.truncate(before)  # a full disk takes a part of a write
            self._file.seek(before)
            raise SinkUnavailable(f"{self._folder}: {error.strerror}: free some space") from error


def tag_of(record: Record) -> str:
    """Return the tag that TensorBoard shows a metric under; it groups them by what stands before the first slash."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(record.labels.items()))
    return f"{record.name}/{labels}" if labels else record.name


def tagged(record: Record) -> list[tuple[str, float]]:
    """Return a record's numbers, each with its tag."""
    tag = tag_of(record)
    if not isinstance(record.value, tuple):
        return [] if record.value is None else [(tag, record.value)]
    joint = "," if record.labels else "/"
    return [(f"{tag}{joint}device={device}", number) for device, number in enumerate(record.value)]


def _folder(origin: Origin) -> str:
    return f"{sanitize(origin.name, max_bytes=100)}-{sanitize(origin.run_id)[:10]}/rank{origin.rank}"
