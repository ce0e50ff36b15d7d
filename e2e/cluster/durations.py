"""Expected durations of steps: measured on this machine where they ran before, else the usual ones."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cluster.paths import cache

# A machine is not taken for faster or slower than this, from few measured steps.
SLOWEST, FASTEST = 8.0, 0.1
# Seconds of a machine of the usual speed beside the measured ones: a step of some seconds says little about long ones.
DOUBT_S = 60.0
# Share of a step that is still expected when it takes longer than expected.
OVERDUE = 0.1


@dataclass(frozen=True, slots=True)
class Expected:
    """A step and its usual duration on a machine with two cores."""

    title: str
    usual_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Duration of a step on this machine, beside the usual one."""

    seconds: float
    usual_s: float


def slowness(measured: Iterable[Measured]) -> float:
    """Return how many times longer than usual the measured steps took; near 1 until they are minutes."""
    known = [each for each in measured if each.usual_s > 0]
    usual = DOUBT_S + sum(each.usual_s for each in known)
    took = DOUBT_S + sum(each.seconds for each in known)
    return min(SLOWEST, max(FASTEST, took / usual))


def expected_s(step: Expected, measured: Mapping[str, Measured]) -> float:
    """Return the duration to expect: that of the last time, else the usual one at the speed of this machine."""
    if last := measured.get(step.title):
        return last.seconds
    return step.usual_s * slowness(measured.values())


def left_s(steps: Iterable[Expected], measured: Mapping[str, Measured], running_s: float = 0) -> float:
    """Return the time that these steps take, of which the first has run for `running_s`."""
    first, *others = [expected_s(each, measured) for each in steps] or [0.0]
    return max(first - running_s, OVERDUE * first) + sum(others)


def about(seconds: float) -> str:
    """Format an estimate, rounded up: `10 s`, `80 s`, `4 min`."""
    if seconds <= 90:
        return f"{max(10, 10 * -(-round(seconds) // 10))} s"
    return f"{-(-round(seconds) // 60)} min"


def load() -> dict[str, Measured]:
    """Return the durations measured on this machine, by the title of the step."""
    try:
        recorded = json.loads(_file().read_text())
        return {title: Measured(float(seconds), float(usual)) for title, (seconds, usual) in recorded.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def record(step: Expected, seconds: float) -> None:
    """Keep the duration of a step beside the tools.

    Of two processes that record at the same time one may be lost: an estimate does not need it.
    """
    known = {title: (each.seconds, each.usual_s) for title, each in load().items()}
    known[step.title] = (round(seconds, 1), step.usual_s)
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        unfinished = _file().with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(known, indent=1, sort_keys=True))
        unfinished.replace(_file())


def _file() -> Path:
    return cache() / "durations.json"
