"""Steps and profiles of each process over time, out of blocks of records; pure."""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING, Final, NamedTuple

from mldiagnostics.pipeline.records import decode
from mldiagnostics.runs.points import PointColumns

if TYPE_CHECKING:
    from collections.abc import Iterator


_START: Final = b'{"v":1,"kind":"heartbeat",'
_BEAT: Final = re.compile(
    rb'\{"v":1,"kind":"heartbeat","t":([0-9.e+]+),"name":"[^"]*","rank":[0-9]+,"attempt":[0-9]+,"step":([0-9]{1,15})\b'
)
_STEP_NAME: Final = b'"step_count":'
_STEP: Final = re.compile(rb'"step_count":([0-9]{1,15}),"step_start_time":([0-9.e+]+)')
_SESSION: Final = b'{"v":1,"kind":"session",'


class SessionStart(NamedTuple):
    """The first record of a profile session."""

    name: str
    t: float
    step: int | None


def beats_of(block: bytes) -> PointColumns:
    """Return times and steps of heartbeats and of starts of steps in whole lines.

    The values are the steps.

    Heartbeats without a step, and lines that no SDK writes, are left out.
    """
    beats = [(at, match) for at in _lines_with(block, _START) if (match := _BEAT.match(block, at))]
    points = [(at, _time(match[1]), int(match[2])) for at, match in beats]
    at = block.find(_STEP_NAME)
    while at >= 0:
        if match := _STEP.match(block, at):
            points.append((at, _time(match[2]), int(match[1])))
        at = block.find(_STEP_NAME, at + 1)
    points = sorted(each for each in points if not isnan(each[1]))
    return PointColumns([t for _, t, _ in points], [step for *_, step in points], [float(step) for *_, step in points])


def sessions_of(block: bytes) -> Iterator[SessionStart]:
    """Yield the records of profile sessions in whole lines."""
    for at in _lines_with(block, _SESSION):
        end = block.find(b"\n", at)
        try:
            record = decode(block[at : end if end >= 0 else len(block)])
        except (ValueError, RecursionError):
            continue
        if record is not None:
            yield SessionStart(record.name, record.t, record.step)


def _lines_with(block: bytes, start: bytes) -> Iterator[int]:
    at = block.find(start)  # a quarter of the time of an expression with the start of lines
    while at >= 0:
        if at == 0 or block[at - 1 : at] == b"\n":
            yield at
        at = block.find(start, at + 1)


def _time(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
