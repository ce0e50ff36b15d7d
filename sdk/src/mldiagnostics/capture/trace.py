"""What is read out of a trace without building it: when its host recorded, and whether it recorded anything.

A trace is a serialised XSpace (`tsl/profiler/protobuf/xplane.proto`): planes > lines > events. The plane
`Task Environment` holds the host's start and stop as statistics.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mldiagnostics.capture.wire import WireError, fields

_ENVIRONMENT = b"Task Environment"
_START, _STOP = b"profile_start_time", b"profile_stop_time"


@dataclass(frozen=True, slots=True)
class Summary:
    """Start and stop in Unix nanoseconds, where the trace tells them, and whether there is any event."""

    start_ns: int | None
    stop_ns: int | None
    has_events: bool


def summarize(trace: memoryview) -> Summary:
    """Walk the trace, skipping over what is not needed. Raises `WireError` if it is not an XSpace."""
    times: dict[bytes, int] = {}
    has_events = False
    for plane in _messages(trace, 1):
        if _name(plane) == _ENVIRONMENT:
            times = _statistics(plane)
        has_events = has_events or any(True for line in _messages(plane, 3) for _ in _messages(line, 4))
    return Summary(times.get(_START), times.get(_STOP), has_events)


def _statistics(plane: memoryview) -> dict[bytes, int]:
    """Names and values of a plane's own integer statistics."""
    names: dict[int, bytes] = {}
    for entry in _messages(plane, 5):
        names[_integer(entry, 1)] = next(
            (bytes(name) for made in _messages(entry, 2) for name in _messages(made, 2)), b""
        )
    values = ((_integer(stat, 1), _integer(stat, 3) or _integer(stat, 4)) for stat in _messages(plane, 6))
    return {names[key]: value for key, value in values if key in names and value}


def _name(described: memoryview) -> bytes:
    return next((bytes(name) for name in _messages(described, 2)), b"")


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in fields(data):
        if number == wanted:
            if isinstance(value, int):
                raise WireError(f"field {number} is an integer")
            yield value


def _integer(data: memoryview, wanted: int) -> int:
    return next((value for number, value in fields(data) if number == wanted and isinstance(value, int)), 0)
