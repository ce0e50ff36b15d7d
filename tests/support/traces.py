"""XSpace files with chosen planes, lines, events and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics.capture.wire import integer, message, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PS_PER_MS = 10**9

Value = int | str


@dataclass(frozen=True)
class TracedEvent:
    """An event, in milliseconds from the start of its line."""

    name: str
    start_ms: float
    duration_ms: float
    values: Mapping[str, Value] = field(default_factory=dict)


def xspace(
    planes: Mapping[str, Mapping[str, Sequence[TracedEvent]]], totals: Mapping[str, Value] | None = None
) -> bytes:
    """Return the bytes of a trace: events by plane and line; `totals` are statistics of each plane."""
    return b"".join(message(1, _plane(name, lines, totals or {})) for name, lines in planes.items())


def programs(instructions: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """Return the bytes of the plane that XLA writes beside the others.

    Args:
        instructions: Encoded shapes by the name of a program and of its instruction.
    """
    parts = []
    for key, (program, shapes) in enumerate(instructions.items(), 1):
        computation = b"".join(
            message(2, text(1, name) + text(2, "fusion") + message(3, shape)) for name, shape in shapes.items()
        )
        module = text(1, program) + message(3, text(1, "main") + computation)
        statistic = integer(1, 1) + message(6, message(1, module))
        parts.append(message(4, integer(1, key) + message(2, text(2, program) + message(5, statistic))))
    return message(1, text(2, "/host:metadata") + b"".join(parts))


def array(kind: int, *dimensions: int) -> bytes:
    """Return an encoded shape; a type is given by its number in XLA."""
    return integer(2, kind) + b"".join(integer(3, each) for each in dimensions)


def _plane(name: str, lines: Mapping[str, Sequence[TracedEvent]], totals: Mapping[str, Value]) -> bytes:
    names: dict[str, int] = {}
    statistics: dict[str, int] = {}
    parts = [text(2, name)]
    for line, traced in lines.items():
        encoded = b"".join(message(4, _event(each, names, statistics)) for each in traced)
        parts.append(message(3, text(2, line) + integer(3, 1_700_000_000_000_000_000) + encoded))
    parts += [message(6, _statistic(key, value, statistics)) for key, value in totals.items()]
    for number, table in ((4, names), (5, statistics)):
        parts += [
            message(number, integer(1, key) + message(2, integer(1, key) + text(2, label)))
            for label, key in table.items()
        ]
    return b"".join(parts)


def _event(event: TracedEvent, names: dict[str, int], statistics: dict[str, int]) -> bytes:
    key = names.setdefault(event.name, len(names) + 1)
    values = (message(4, _statistic(name, value, statistics)) for name, value in event.values.items())
    offset, duration = int(event.start_ms * PS_PER_MS), int(event.duration_ms * PS_PER_MS)
    return b"".join((integer(1, key), integer(2, offset), integer(3, duration), *values))


def _statistic(name: str, value: Value, statistics: dict[str, int]) -> bytes:
    key = integer(1, statistics.setdefault(name, len(statistics) + 1))
    return key + (text(5, value) if isinstance(value, str) else integer(4, value))
