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


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Start and stop in Unix nanoseconds, None if missing; and whether it has events."""

    start_ns: int | None
    stop_ns: int | None
    has_events: bool


def summarize(trace: memoryview) -> TraceSummary:
    """Return the summary of a serialised XSpace; raise `WireError` if it is not one."""
    times: dict[bytes, int] = {}
    has_events = False
    for plane in _messages(trace, 1):
        if _name(plane) == _ENVIRONMENT:
            times = _statistics(plane)
        has_events = has_events or any(True for line in _messages(plane, 3) for _ in _messages(line, 4))
    return TraceSummary(times.get(_START), times.get(_STOP), has_events)


def _statistics(plane: memoryview) -> dict[bytes, int]:
    """Return start and stop from the plane's integer statistics."""
    keys: dict[bytes, int] = {}
    for entry in _messages(plane, 5):
        name = next((_name(metadata) for metadata in _messages(entry, 2)), b"")
        if name in (_START, _STOP):
            keys[name] = _integer(entry, 1)
    times: dict[bytes, int] = {}
    for stat in _messages(plane, 6):
        key, value = _integer(stat, 1), _integer(stat, 3) or _integer(stat, 4)
        times |= {name: value for name, number in keys.items() if key == number and value}
    return times


def _name(data: memoryview) -> bytes:
    """Return the first bytes of the name, enough to compare it."""
    return next((bytes(name[:_NAME_BYTES]) for name in _messages(data, 2)), b"")


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in fields(data):
        if number == wanted:
            if isinstance(value, int):
                raise WireError(f"field {number} is an integer")
            yield value


def _integer(data: memoryview, wanted: int) -> int:
    return next((value for number, value in fields(data) if number == wanted and isinstance(value, int)), 0)
