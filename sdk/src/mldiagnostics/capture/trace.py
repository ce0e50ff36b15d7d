"""Start, stop and presence of events of a trace, read without decoding all of it.

A trace is a serialised XSpace (`tsl/profiler/protobuf/xplane.proto`): planes > lines > events. The plane
`Task Environment` holds the host's start and stop as statistics.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mldiagnostics.capture.wire import WireError, fields

_ENVIRONMENT = b"Task Environment"
_START, _STOP = b"profile_start_time", b"profile_stop_time"
_NAME_BYTES = 32
_FIELDS = 50_000
"""Fields that a summary looks at, which takes about 50 ms.

Traces need far fewer: writers put the lines of a plane before its tables, and one event is enough.
"""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Start and stop in Unix nanoseconds, None if not found.

    `has_events` is false if the trace certainly has none.
    """

    start_ns: int | None
    stop_ns: int | None
    has_events: bool


class _TooManyFields(Exception):
    pass


def summarize(trace: memoryview) -> TraceSummary:
    """Return the summary of a serialised XSpace; raise `WireError` if it is not one.

    It is read up to a number of fields. A trace that has no event until then counts as one with events.
    """
    walk = _Walk()
    try:
        for plane in walk.messages(trace, 1):
            walk.visit(plane)
    except _TooManyFields:
        walk.has_events = True
    return TraceSummary(walk.times.get(_START), walk.times.get(_STOP), walk.has_events)


class _Walk:
    """One walk over a trace, and its results."""

    def __init__(self) -> None:
        self.times: dict[bytes, int] = {}
        self.has_events = False
        self._left = _FIELDS

    def visit(self, plane: memoryview) -> None:
        if self._name(plane) == _ENVIRONMENT:
            self.times = self._statistics(plane)
        self.has_events = self.has_events or any(
            True for line in self.messages(plane, 3) for _ in self.messages(line, 4)
        )

    def messages(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        for number, value in self._fields(data):
            if number == wanted:
                if isinstance(value, int):
                    raise WireError(f"field {number} is an integer")
                yield value

    def _statistics(self, plane: memoryview) -> dict[bytes, int]:
        """Return start and stop from the plane's integer statistics."""
        keys: dict[bytes, int] = {}
        for entry in self.messages(plane, 5):
            name = next((self._name(metadata) for metadata in self.messages(entry, 2)), b"")
            if name in (_START, _STOP):
                keys[name] = self._integer(entry, 1)
        times: dict[bytes, int] = {}
        for stat in self.messages(plane, 6):
            key, value = self._integer(stat, 1), self._integer(stat, 3) or self._integer(stat, 4)
            times |= {name: value for name, number in keys.items() if key == number and value}
        return times

    def _name(self, data: memoryview) -> bytes:
        """Return the first bytes of the name, enough to compare it."""
        return next((bytes(name[:_NAME_BYTES]) for name in self.messages(data, 2)), b"")

    def _integer(self, data: memoryview, wanted: int) -> int:
        return next((value for number, value in self._fields(data) if number == wanted and isinstance(value, int)), 0)

    def _fields(self, data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
        for field in fields(data):
            self._left -= 1
            if self._left < 0:
                raise _TooManyFields
            yield field
