"""Steps of a recording: windows of a device with numbers that hosts share. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics_diagnosis.reading.recording import Collective, Device, Thread


FEWEST_REPEATS = 3


@dataclass(frozen=True, slots=True)
class StepSpan:
    """One step: from the end of the last collective before it to that of its own last."""

    number: int
    start_ps: int
    end_ps: int
    first_collective_ps: int | None = None


@dataclass(frozen=True, slots=True)
class Windows:
    """The steps of a host, and where their numbers come from."""

    source: Literal["annotations", "modules"]
    windows: list[StepSpan]


def main_thread(threads: Sequence[Thread]) -> Thread | None:
    """Return the thread of the training loop.

    It marks steps, or launches most programs, or most kernels.
    """

    def order(thread: Thread) -> tuple[int, int, int, int]:
        launches = [name for _, _, role, name in thread.events if role == "dispatch"]
        return len(thread.steps), sum("(" in name for name in launches), len(launches), len(thread.events)

    return max(threads, key=order, default=None)


def find_windows(device: Device | None, thread: Thread | None) -> Windows | None:
    """Return the steps of a host; None if nothing in its trace repeats."""
    steps = sorted(thread.steps) if thread else []
    collectives = sorted(device.collectives, key=lambda each: each.start_ps) if device else []
    if len(steps) >= FEWEST_REPEATS:
        if len(collectives) >= FEWEST_REPEATS:
            return Windows("annotations", list(_between_collectives(_by_step(collectives, steps))))
        return Windows("annotations", list(_between_starts([(start, number) for start, _, number in steps])))
    runs = [(each.run, each) for each in collectives if each.run is not None]
    if len({run for run, _ in runs}) >= FEWEST_REPEATS:
        return Windows("modules", list(_between_collectives(runs)))
    starts = _repeated_launches(thread) if thread else []
    if len(starts) < FEWEST_REPEATS:
        return None
    if collectives:
        launchers = [(bisect_right(starts, each.launched_ps) - 1, each) for each in collectives]
        numbered = [(number, each) for number, each in launchers if number >= 0]
        return Windows("modules", list(_between_collectives(numbered)))
    return Windows("modules", list(_between_starts([(start, number) for number, start in enumerate(starts)])))


def _by_step(
    collectives: Sequence[Collective], steps: Sequence[tuple[int, int, int]]
) -> Iterable[tuple[int, Collective]]:
    """Number collectives by the step that launched them.

    A host may launch ahead of the device. Executions are numbered alike on all hosts, so where one is launched in a
    step by all signs, the distance of the two numbers holds for the executions whose launch is not in the trace.
    """
    starts = [start for start, _, _ in steps]

    def step_at(moment: int) -> int | None:
        index = bisect_right(starts, moment) - 1
        return steps[index][2] if index >= 0 else None

    numbers = [step_at(each.launched_ps) for each in collectives]
    sure = Counter(
        number - each.run
        for each, number in zip(collectives, numbers, strict=True)
        if each.run is not None and number is not None and each.launched_ps < each.start_ps
    )
    distance, votes = sure.most_common(1)[0] if sure else (0, 0)
    holds = votes * 2 > sure.total()
    for each, number in zip(collectives, numbers, strict=True):
        if holds and each.run is not None:
            yield each.run + distance, each
        elif number is not None:
            yield number, each


def _between_collectives(numbered: Iterable[tuple[int, Collective]]) -> Iterable[StepSpan]:
    of_step: dict[int, list[Collective]] = defaultdict(list)
    for number, each in numbered:
        of_step[number].append(each)
    for before, number in pairwise(sorted(of_step)):
        start = max(each.end_ps for each in of_step[before])
        end = max(each.end_ps for each in of_step[number])
        first = min(each.start_ps for each in of_step[number])
        if start <= first < end:
            yield StepSpan(number, start, end, first)


def _between_starts(starts: Sequence[tuple[int, int]]) -> Iterable[StepSpan]:
    seen: set[int] = set()
    for (start, number), (end, _) in pairwise(starts):
        if start < end and number not in seen:
            seen.add(number)
            yield StepSpan(number, start, end)


def _repeated_launches(thread: Thread) -> list[int]:
    """Return the starts of the repeated event that takes most time.

    It is a program, or a step of an optimizer.
    """
    spent: dict[str, int] = defaultdict(int)
    starts: dict[str, list[int]] = defaultdict(list)
    ends: dict[str, int] = defaultdict(int)
    for start, end, role, name in sorted(thread.events):
        if (role == "step" or (role == "dispatch" and "(" in name)) and start >= ends[name]:  # JAX nests its launches
            spent[name] += end - start
            starts[name].append(start)
            ends[name] = end
    repeated = [name for name, moments in starts.items() if len(moments) >= FEWEST_REPEATS]
    return sorted(starts[max(repeated, key=lambda name: spent[name])]) if repeated else []
