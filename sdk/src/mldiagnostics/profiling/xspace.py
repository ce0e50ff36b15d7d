"""Events as a serialised XSpace, XProf's format, for frameworks that lack it.

Field numbers: `tsl/profiler/protobuf/xplane.proto`. XProf shows a plane named `/host:CPU` as the host and
`/device:GPU:<n>` as a device; a line is a row in its trace viewer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics.capture.wire import integer, message, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HOST_PLANE = "/host:CPU"

_ENVIRONMENT = "Task Environment"
_PS_PER_NS = 1000


def gpu_plane(index: int) -> str:
    """Return XProf's name of a GPU."""
    return f"/device:GPU:{index}"


@dataclass(slots=True)
class XSpaceLine:
    """A row of events: name, start in Unix nanoseconds, duration in nanoseconds."""

    name: str
    events: list[tuple[str, int, int]] = field(default_factory=list)


def encode(planes: Mapping[str, Mapping[int, XSpaceLine]], *, host: str, start_ns: int, stop_ns: int) -> bytes:
    """Return the XSpace of a recording.

    Args:
        planes: Name of a plane -> number of a line -> line.
        host: The host's name.
        start_ns: Start of the recording in Unix nanoseconds.
        stop_ns: End of the recording in Unix nanoseconds.
    """
    encoded = [
        _plane(number, name, lines.items(), start_ns=start_ns) for number, (name, lines) in enumerate(planes.items(), 1)
    ]
    encoded.append(_environment(len(planes) + 1, start_ns=start_ns, stop_ns=stop_ns))
    return b"".join((*(message(1, plane) for plane in encoded), text(4, host)))


def _plane(number: int, name: str, lines: Iterable[tuple[int, XSpaceLine]], *, start_ns: int) -> bytes:
    names: dict[str, int] = {}
    encoded = [message(3, _line(thread, line, names, start_ns=start_ns)) for thread, line in lines]
    metadata = (message(4, _entry(key, integer(1, key) + text(2, event))) for event, key in names.items())
    return b"".join((integer(1, number), text(2, name), *encoded, *metadata))


def _line(number: int, line: XSpaceLine, names: dict[str, int], *, start_ns: int) -> bytes:
    parts = [integer(1, number), text(2, line.name), integer(3, start_ns)]
    parts.extend(_events(line, names, start_ns=start_ns))
    return b"".join(parts)


def _events(line: XSpaceLine, names: dict[str, int], *, start_ns: int) -> Iterator[bytes]:
    """Encode events by start, outer ones first, cut to the start of the recording."""
    for name, event_ns, duration_ns in sorted(line.events, key=lambda event: (event[1], -event[2])):
        offset_ns = max(event_ns - start_ns, 0)
        length_ns = max(event_ns + duration_ns - start_ns - offset_ns, 0)
        key = names.setdefault(name, len(names) + 1)
        yield message(4, integer(1, key) + integer(2, offset_ns * _PS_PER_NS) + integer(3, length_ns * _PS_PER_NS))


def _environment(number: int, *, start_ns: int, stop_ns: int) -> bytes:
    """Encode the plane with the start and end of the recording."""
    times = {"profile_start_time": start_ns, "profile_stop_time": stop_ns}
    parts = [integer(1, number), text(2, _ENVIRONMENT)]
    for key, (name, value) in enumerate(times.items(), 1):
        parts.append(message(5, _entry(key, integer(1, key) + text(2, name))))
        parts.append(message(6, integer(1, key) + integer(3, value)))
    return b"".join(parts)


def _entry(key: int, value: bytes) -> bytes:
    """Encode one entry of a map from integers to messages."""
    return integer(1, key) + message(2, value)
