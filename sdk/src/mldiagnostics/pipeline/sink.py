"""The interface of a sink, a destination of records, and its errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.errors import MLDiagnosticsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record


class SinkUnavailable(MLDiagnosticsError):
    """No record of the batch was accepted; the batch is retried later."""


class SinkNotReady(SinkUnavailable):
    """The sink is still starting; a later failure is reported separately."""


class SinkRefused(MLDiagnosticsError):
    """The batch is rejected for good; it is dropped and counted."""


class SpooledForNow(SinkUnavailable):
    """Records are safe on the local disk and a warning was logged; do not retry soon."""


class SpoolFull(SinkRefused):
    """The batch is dropped because the limit of waiting bytes is reached."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Size and timing of a sink's batches.

    Attributes:
        records: Most records of a batch. Small batches hold the GIL, and so a step of the training, for a short time.
        gather_s: How long a batch is gathered at most, in seconds.
        flush_s: How long written records may stay unflushed, in seconds.
    """

    records: int = 64
    gather_s: float = 0.0
    flush_s: float = math.inf


class Sink(Protocol):
    """A destination of records, called by one thread of its own, which it may block.

    `open`, `write` and `flush` raise `SinkUnavailable` or `SinkRefused`; any other exception is treated as
    `SinkRefused`. After `SinkUnavailable` the same call is repeated after a pause.
    """

    @property
    def batch_policy(self) -> BatchPolicy:
        """The size and timing of its batches."""

    @property
    def durable(self) -> bool:
        """Whether written records survive the process without a flush."""

    def open(self) -> None:
        """Prepare for records; called first."""

    def write(self, batch: Sequence[Record]) -> None:
        """Write a batch, in order."""

    def flush(self) -> None:
        """Return when all written records have reached the destination."""

    def close(self) -> None:
        """Release all resources; called last, also after errors."""


@dataclass(frozen=True, slots=True)
class SinkMaker:
    """Creates the sink of one process; `name` is its name in messages.

    `make` opens no file or connection, and is called again after a fork, since none may be shared with the parent.
    """

    name: str
    make: Callable[[Origin], Sink]
