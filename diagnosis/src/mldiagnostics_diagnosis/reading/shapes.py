"""Shapes of operations, out of the programs that XLA keeps in a trace.

The plane `/host:metadata` has the serialized program of each module. Field numbers: `xla/service/hlo.proto` and
`xla/xla_data.proto`. Tenants write these bytes, so the work is bounded, and nothing recurses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from mldiagnostics.capture.wire import WireError, fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet


PROGRAMS = "/host:metadata"
MAX_PROGRAM_BYTES = 64 * 2**20
"""Of all programs whose instructions are looked at."""
MAX_INSTRUCTIONS = 200_000
MAX_SHAPE = 80
_MAX_PARTS = 32
"""Dimensions of an array, and elements of a tuple, that are looked at."""
FINGERPRINT = re.compile(r"\(\d+\)$")
_TUPLE = 13
_TYPES: dict[int, str] = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2",
    20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2",
    28: "f8e4m3", 29: "f8e3m4", 32: "f4e2m1fn", 33: "f8e8m0fnu",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A module of XLA in a trace."""

    name: str
    """With its number, such as `jit_train(5)`."""
    statistics: memoryview
    """Its metadata, with the serialized program as a statistic."""


def shapes_of(programs: Iterable[Program], executed: AbstractSet[str], wanted: AbstractSet[str]) -> dict[str, str]:
    """Return the shapes of operations by name.

    An operation that has several shapes in the executed programs is left out, as the trace does not say which one ran.

    Args:
        programs: All programs in the trace.
        executed: Names of the programs that ran, with or without their numbers; empty if the trace does not say.
        wanted: Names of operations.
    """
    ran = _executed(list(programs), executed)
    if not wanted or sum(len(each.statistics) for each in ran) > MAX_PROGRAM_BYTES:
        return {}
    by_name: dict[str, set[str]] = {}
    try:
        instructions = islice((one for each in ran for one in _instructions(each)), MAX_INSTRUCTIONS)
        for name, shape in _shapes(instructions, {name.encode(): name for name in wanted}):
            by_name.setdefault(name, set()).add(shape)
    except WireError:
        return {}
    return {name: shapes.pop() for name, shapes in by_name.items() if len(shapes) == 1}


def _executed(programs: Sequence[Program], executed: AbstractSet[str]) -> Sequence[Program]:
    """Return the programs that ran, by name and number, or else by name."""
    exact = [each for each in programs if each.name in executed]
    names = {FINGERPRINT.sub("", each) for each in executed}
    return exact or [each for each in programs if not names or FINGERPRINT.sub("", each.name) in names]


def _instructions(program: Program) -> Iterator[memoryview]:
    """Return the instructions of a program: of all computations in its module."""
    parts: Iterator[memoryview] = iter((program.statistics,))
    for number in (5, 6, 1, 3, 2):  # statistic, its bytes, module, computation, instruction
        parts = chain.from_iterable(map(partial(_messages, number=number), parts))
    return parts


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    return (value for tag, value in fields(data) if tag == number and not isinstance(value, int))


def _shapes(instructions: Iterable[memoryview], wanted: dict[bytes, str]) -> Iterator[tuple[str, str]]:
    """Yield the names and shapes of the wanted instructions.

    The name of an instruction is its first field.
    """
    for instruction in instructions:
        name = ""
        for number, value in fields(instruction):
            if isinstance(value, int):
                continue
            if number == 1:
                name = wanted.get(bytes(value[: MAX_SHAPE * 4]), "")
            if number == 3 and name:
                yield name, _text(value)
            if number == 3 or not name:
                break


def _text(shape: memoryview) -> str:
    """Return a shape as XLA writes it, without its layout.

    It is an array's, or a tuple's of arrays.
    """
    kind, text, parts = _array(shape)
    if kind == _TUPLE:
        shown = ["(...)" if inner == _TUPLE else one for inner, one, _ in map(_array, parts)]
        text = f"({', '.join(shown)})"
    return text if len(text) <= MAX_SHAPE else text[: MAX_SHAPE - 3] + "..."


def _array(shape: memoryview) -> tuple[int, str, list[memoryview]]:
    """Return the type of a shape, its text as an array, and its elements as a tuple."""
    kind, dimensions, parts = 0, list[int](), list[memoryview]()
    for number, value in islice(fields(shape), 4 * _MAX_PARTS):
        if number == 2 and isinstance(value, int):
            kind = value
        elif number == 3 and len(dimensions) < _MAX_PARTS:
            dimensions += [value] if isinstance(value, int) else _packed(value)
        elif number == 4 and not isinstance(value, int) and len(parts) < _MAX_PARTS:
            parts.append(value)
    name = _TYPES.get(kind, f"type{kind}")
    return kind, f"{name}[{','.join(map(str, dimensions))}]", parts


def _packed(data: memoryview) -> Iterator[int]:
    """Yield the first integers of a packed field."""
    value = shift = count = 0
    for byte in data[: 10 * _MAX_PARTS]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 and count < _MAX_PARTS:
            yield value & (2**64 - 1)
            value, shift, count = 0, 0, count + 1
