"""One destination of a monitor: a translation of observations, and its sinks.

Each destination has its own pipeline, so that a slow or failing one does not delay the others.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.metric_types import NO_UNIT, UNITS
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mldiagnostics.goodput.exports.observe import MetricPoint, Observation
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.sink import SinkMaker


Translate: TypeAlias = "Callable[[Observation], Iterable[MetricPoint]]"
"""Translates an observation into the metrics of one destination."""

_MAX_WAITING = 50_000
"""Points that may wait; below the number of records that a sink may be behind."""

_FLUSH_TIMEOUT_S = 60.0


class Export:
    """Sends observations and never raises; sinks work in threads and log problems.

    `flush` and `close` wait for at most their timeout, `write` waits only for a very long history.
    """

    def __init__(self, origin: Origin, translate: Translate, makers: Sequence[SinkMaker]) -> None:
        self._origin, self._translate = origin, translate
        self._recording = RecordPipeline(origin, makers, buffer=Buffer())

    def write(self, observation: Observation) -> None:
        """Send an observation."""
        at, rank, attempt = observation.at / 1e6, self._origin.rank, self._origin.attempt
        points = iter(self._translate(observation))
        while records := [
            Record("metric", at, name, float(value), step, labels, rank, attempt, UNITS.get(name, NO_UNIT))
            for name, value, labels, step in islice(points, _MAX_WAITING)
        ]:
            self._recording.extend(records)
            if len(records) == _MAX_WAITING:
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
