"""What a sink is: a place that takes records, and how it says that it cannot."""

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
    """Nothing of the batch was taken, and that may change: it is offered again later. The message is for the user."""


class SinkNotReady(SinkUnavailable):
    """What keeps the sink from taking records is not found out yet; once it is, that is a complaint of its own."""


class SinkRefused(MLDiagnosticsError):
    """The batch will never be taken: it is dropped and counted. The message is for the user."""


class SpooledForNow(SinkUnavailable):
    """What was taken is safe on the local disk, and people know: to try again within seconds would be in vain."""


class SpoolFull(SinkRefused):
    """The batch is dropped since too much waits on the local disk already."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How a sink wants its records.

    A batch has at most `records` and is gathered for at most `gather_s`; small ones keep the time short for which the
    sink holds the interpreter's lock, and with it a step of the training. `flush_s` is how long what it took may
    wait until it is flushed although nobody asks.
    """

    records: int = 64
    gather_s: float = 0.0
    flush_s: float = math.inf


class Sink(Protocol):
    """A place for records, used by one thread of its own; it may block that one as long as it needs.

    `open`, `write` and `flush` raise `SinkUnavailable` or `SinkRefused`; anything else counts as a fault of the sink
    and is treated as `SinkRefused`. After `SinkUnavailable` the same call is made again, after a pause.
    """

    @property
    def pace(self) -> BatchPolicy:
        """How it wants its records."""

    @property
    def durable(self) -> bool:
        """Whether what it took outlives this process even unflushed, so that an exit need not wait for the flush."""

    def open(self) -> None:
        """Get ready for records; called first."""

    def write(self, batch: Sequence[Record]) -> None:
        """Take a batch, in order."""

    def flush(self) -> None:
        """Return when all that was written is where it belongs."""

    def close(self) -> None:
        """Give everything back; flushed before, where there was time. Called last, also after errors."""


@dataclass(frozen=True, slots=True)
class SinkMaker:
    """Makes a sink for one process's records, without touching anything; named as people see it in complaints.

    It is asked again after a fork, since no connection or file may be shared with the parent.
    """

    name: str
    make: Callable[[Origin], Sink]
