"""One destination of a monitor: a translation of observations, and its sinks.

Each destination has its own pipeline, so that a slow or failing one does not delay the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mldiagnostics.goodput.exports.observe import MetricPoint, Observation
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.sink import SinkMaker

__all__ = ["Export", "Translate"]


Translate: TypeAlias = "Callable[[Observation], Iterable[MetricPoint]]"
"""Translates an observation into the metrics of one destination."""

_MAX_WAITING = 50_000
"""Points that may wait; below the capacity of the SDK's buffer."""

_FLUSH_TIMEOUT_S = 60.0


class Export:
    """Sends observations and never raises; sinks work in threads and log problems.

    `flush` and `close` wait for at most their timeout, `write` waits only for a very long history.
    """

    def __init__(self, origin: Origin, translate: Translate, makers: Sequence[SinkMaker]) -> None:
        self._translate = translate
        self._buffer = Buffer()
        self._recording = RecordPipeline(origin, makers, buffer=self._buffer)

    def write(self, observation: Observation) -> None:
        """Send an observation."""
        at, buffer = observation.at / 1e6, self._buffer
        for count, (name, value, labels, step) in enumerate(self._translate(observation), 1):
            if labels or len(buffer.entries) >= buffer.capacity:
                buffer.add("metric", name, value=float(value), step=step, labels=labels, t=at)
            else:
                buffer.append((at, "metric", name, float(value), step, None, None, 0))
            if count % _MAX_WAITING == 0:
                self._recording.flush(_FLUSH_TIMEOUT_S)

    def report(self, name: str, at: int, content: Mapping[str, object]) -> None:
        """Send a report as an event."""
        self._recording.append("event", name, t=at / 1e6, payload=content)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; return False on a timeout or a failure."""
        return self._recording.flush(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Send the rest and stop; with a timeout of 0 drop the rest without a warning."""
        self._recording.close(timeout_s, quiet=not timeout_s)
