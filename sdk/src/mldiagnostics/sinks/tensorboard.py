"""Metrics as TensorBoard event files, or as whole objects in a remote store.

A process's files are in `<root>/<run's name>-<first 10 digits of its id>/rank<rank>`, which TensorBoard shows as one
of its runs. A tag is the metric's name, with labels `name/key=value,key=value`, and for a series with one number per
device `name/device=0` and so on. Values of a metric without steps are counted. Records of other kinds are left out.
File format: TFRecord of `tensorboard.compat.proto.event_pb2.Event`, version 2, as `tf.summary` writes it.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.layout import sanitize
from mldiagnostics.locations import local_path
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker, SinkUnavailable
from mldiagnostics.sinks.appended_file import AppendedFile
from mldiagnostics.sinks.event_frames import frames, number_event, scalar_event, version_event
from mldiagnostics.sinks.local_first import LocalFirst, LocalSink
from mldiagnostics.text.file_errors import file_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.sinks.objects import ObjectSink

_BATCH_RECORDS = 1024

MAX_COUNTERS = 10_000
"""Limit of tags with a counted step; the steps of further ones stay 0."""

_MAX_INT64 = 2**63 - 1


def maker(url: str, *, folder: str | None = None) -> SinkMaker:
    """Return the maker for `tensorboard:<path or URL>`, TensorBoard's log directory.

    `folder` is the files' directory below it, instead of one for each run and process. Raises `ConfigurationError` and
    `MissingExtraError`.
    """
    root = url.removeprefix("tensorboard:")
    if not root:
        raise ConfigurationError(f"{url!r}: no directory; write tensorboard:/path or tensorboard:gs://bucket/logs")
    require("tensorboard", extra="tensorboard", needed_for=url)
    local = local_path(root)
    if local is None:
        from mldiagnostics.spool.queue import check_location  # noqa: PLC0415 - imports stores only where one is used

        check_location(root)

    def make(origin: Origin) -> Sink:
        inner = _folder(origin) if folder is None else folder

        def object_sink() -> ObjectSink:
            from mldiagnostics.sinks.objects import ObjectSink  # noqa: PLC0415 - imports stores only where one is used

            return ObjectSink(
                str(local or root),
                origin,
                lambda top: EventFile(top / inner, origin),
                records=_BATCH_RECORDS,
                part="tensorboard",
            )

        if local is None:
            return object_sink()
        direct = LocalSink(EventFile(local / inner, origin), BatchPolicy(records=_BATCH_RECORDS, gather_s=0.1))
        return LocalFirst(str(local), direct, object_sink)

    return SinkMaker(url, make)


class EventFile:
    """The event files of one process; a batch is written whole or not at all."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self._folder = folder
        self._origin = origin
        self._file = AppendedFile()
        self._number = 0
        self._steps: dict[str, Iterator[int]] = {}

    def open(self) -> None:
        """Create a file unless one is open. Raises `SinkUnavailable` if the disk fails."""
        if not self._file.is_intact():  # it may have been deleted
            try:
                self._file.create(self._path())
            except OSError as error:
                raise self._unavailable(error) from error
        if not self._file.bytes:
            self._write(frames([version_event(time.time())]))

    def append(self, batch: Sequence[Record]) -> None:
        """Append the batch's metrics. Raises `SinkUnavailable` if the disk fails."""
        self.open()
        metrics = [record for record in batch if record.kind == "metric" and record.value is not None]
        self._write(frames(GilYielder().results(self._event, metrics)))

    def close(self) -> None:
        """Close the file; the next batch creates another."""
        self._file.close()

    def _event(self, record: Record) -> bytes:
        step = record.step
        if not record.labels and type(record.value) is float and step is not None and 0 <= step <= _MAX_INT64:
            return number_event(record.t, step, record.name, record.value)
        tag = tag_of(record)
        step = self._counted(tag) if step is None else max(-_MAX_INT64, min(step, _MAX_INT64))
        if isinstance(record.value, float):
            return number_event(record.t, step, tag, record.value)
        return scalar_event(record.t, step, tagged(record))

    def _counted(self, tag: str) -> int:
        if tag not in self._steps and len(self._steps) >= MAX_COUNTERS:
            return 0
        return next(self._steps.setdefault(tag, count()))

    def _path(self) -> Path:
        """Return a path whose name sorts in order of creation, as TensorBoard reads files."""
        self._number += 1
        stamp = f"{int(time.time()):010}"
        return self._folder / f"events.out.tfevents.{stamp}.{self._origin.incarnation}.{self._number:05}"

    def _write(self, data: bytes) -> None:
        try:
            self._file.append(data)
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> SinkUnavailable:
        return SinkUnavailable(f"{self._folder}: {file_problem(error, 'choose another directory for event files')}")


def tag_of(record: Record) -> str:
    """Return a metric's tag; TensorBoard groups tags by the part before a slash."""
    if not record.labels:
        return record.name
    return f"{record.name}/{','.join(f'{key}={value}' for key, value in sorted(record.labels.items()))}"


def tagged(record: Record) -> list[tuple[str, float]]:
    """Return a record's values, each with its tag."""
    tag = tag_of(record)
    if not isinstance(record.value, tuple):
        return [] if record.value is None else [(tag, record.value)]
    separator = "," if record.labels else "/"
    return [(f"{tag}{separator}device={device}", number) for device, number in enumerate(record.value)]


def _folder(origin: Origin) -> str:
    return f"{sanitize(origin.name, max_bytes=100)}-{sanitize(origin.run_id)[:10]}/rank{origin.rank}"
