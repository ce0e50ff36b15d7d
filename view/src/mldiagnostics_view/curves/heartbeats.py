"""Steps of each process over time, out of the heartbeats in blocks of records; pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from mldiagnostics.runs.points import PointColumns

__all__ = ["beats_of"]

_START: Final = b'{"v":1,"kind":"heartbeat",'
_BEAT: Final = re.compile(
    rb'\{"v":1,"kind":"heartbeat","t":([0-9.e+]+),"name":"[^"]*","rank":[0-9]+,"attempt":[0-9]+,"step":([0-9]{1,15})\b'
)


def beats_of(block: bytes) -> PointColumns:
    """Return times and steps of the heartbeats in whole lines; the values are the steps.

    Heartbeats without a step, and lines that no SDK writes, are left out.
    """
    times, steps = [], []
    at = block.find(_START)  # a quarter of the time of an expression with the start of lines
    while at >= 0:
        if (at == 0 or block[at - 1 : at] == b"\n") and (match := _BEAT.match(block, at)):
            with suppress(ValueError):
                times.append(float(match[1]))
                steps.append(int(match[2]))
        at = block.find(_START, at + 1)
    return PointColumns(times, steps, map(float, steps))
