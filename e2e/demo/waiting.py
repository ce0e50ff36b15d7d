"""Show how far a preparation is, and how long it still takes: a bar in a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Protocol

from cluster import durations
from cluster.durations import Expected
from cluster.progress import echo
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

POLL_S = 0.5
LINE_S = 60.0
LOOK_S = 10.0
"""Pause between two looks at the steps that are left: a look hashes the sources of all images."""


class Work(Protocol):
    """Something that runs and writes lines."""

    def lines(self) -> list[str]:
        """Return the lines since the last call."""

    def finished(self) -> bool:
        """Return whether it has ended; raise if it failed."""


class Countdown:
    """Time that work in parallel takes, each a list of steps; the first step has run since it became the first."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[Expected | None, float]] = {}

    def left_s(self, parallel: Sequence[Sequence[Expected]], now: float) -> float:
        """Return the seconds that are left at this moment: those of the longest work."""
        measured = durations.load()
        return max(
            durations.left_s(steps, measured, self._running_s(i, steps, now)) for i, steps in enumerate(parallel)
        )

    def _running_s(self, index: int, steps: Sequence[Expected], now: float) -> float:
        first = steps[0] if steps else None
        known, since = self._first.get(index, (None, now))
        if first != known:
            since = now
        self._first[index] = (first, since)
        return now - since


def wait(
    console: Console, work: Work, parallel: Callable[[], Sequence[Sequence[Expected]]], following: Sequence[Expected]
) -> None:
    """Wait until the work has ended and show its progress.

    Args:
        console: Place of the bar, if it is a terminal.
        work: The work; its `finished` may raise.
        parallel: Returns the steps that are left of each part of the work, the running one first.
        following: The steps after the work.
    """
    started = now = time.monotonic()
    countdown = Countdown()
    bar = _bar(console)
    task = bar.add_task("", total=1.0, left="")
    next_line = started
    steps, looked_at = parallel(), started
    with bar if console.is_terminal else nullcontext():
        while True:
            ended = work.finished()
            lines, now = work.lines(), time.monotonic()
            if now >= looked_at + LOOK_S:
                steps, looked_at = parallel(), now
            left = countdown.left_s(steps, now) + durations.left_s(following, durations.load())
            if console.is_terminal:
                text = next((line.strip() for line in reversed(lines) if line.strip()), None)
                share = (now - started) / (now - started + left)
                bar.update(task, completed=share, left=f"about {durations.about(left)} left", description=text)
            else:
                for line in lines:
                    echo(f"  {line}")
                if now >= next_line and not ended:
                    echo(f"  (about {durations.about(left)} left)")
                    next_line = now + LINE_S
            if ended:
                return
            time.sleep(POLL_S)


def _bar(console: Console) -> Progress:
    columns = (SpinnerColumn(), BarColumn(bar_width=30), TextColumn("{task.fields[left]}"))
    return Progress(*columns, TextColumn("{task.description}"), console=console, transient=True)
