"""One place that a monitor tells: in which words, and by which of the SDK's sinks.

Each has a recording of its own, so that a place that is slow, down or full costs the others nothing.
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

__all__ = ["Export", "Words"]


Words: TypeAlias = "Callable[[Observation], Iterable[MetricPoint]]"
"""Says an observation in the names of one place."""

_AT_ONCE = 50_000
"""How many points may wait: less than the SDK's buffer takes."""

_PATIENCE_S = 60.0


class Export:
    """Tells observations, and never raises: its sinks work in threads of their own, and say what they cannot.

    `flush` and `close` wait for at most the time they are given, `write` only for a history of very many steps.
    """

    def __init__(self, origin: Origin, words: Words, makers: Sequence[SinkMaker]) -> None:
        self._words = words
        self._recording = RecordPipeline(origin, makers, buffer=Buffer())

    def write(self, observation: Observation) -> None:
        """Tell an observation."""
        at = observation.at / 1e6
        for count, (name, value, labels, step) in enumerate(self._words(observation), 1):
            self._recording.append("metric", name, value=float(value), step=step, labels=labels, t=at)
            if count % _AT_ONCE == 0:
                self._recording.flush(_PATIENCE_S)

    def report(self, name: str, at: int, content: Mapping[str, object]) -> None:
        """Tell a whole document."""
        self._recording.append("event", name, t=at / 1e6, payload=content)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is where it belongs; false if that takes longer or a place does not take it."""
        return self._recording.flush(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Tell what is left and stop; with 0 seconds nobody wants the rest, so nothing is said of it."""
        self._recording.close(timeout_s, quiet=not timeout_s)
