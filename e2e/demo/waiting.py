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


class Work(Protocol):
    """Something that runs and writes lines."""

    def lines(self) -> list[str]:
        """Return the lines since the last call."""

    def finished(self) -> bool:
        """Return whether it has ended; raise if it failed."""


class Countdown:
    """Time that the remaining steps take; the first of them has run since it became the first."""

    def __init__(self, now: float) -> None:
        self._first: Expected | None = None
        self._since = now

    def left_s(self, steps: Sequence[Expected], now: float) -> float:
        """Return the seconds that are left at this moment."""
        first = steps[0] if steps else None
        if first != self._first:
            self._first, self._since = first, now
        return durations.left_s(steps, durations.load(), now - self._since)


def wait(console: Console, work: Work, remaining: Callable[[], Sequence[Expected]]) -> None:
    """Wait until the work has ended and show its progress.

    Args:
        console: Place of the bar, if it is a terminal.
        work: The work; its `finished` may raise.
        remaining: Returns the steps that are left, the running one first.
    """
    started = now = time.monotonic()
    countdown = Countdown(started)
    bar = _bar(console)
    task = bar.add_task("", total=1.0, left="")
    next_line = started
    with bar if console.is_terminal else nullcontext():
        while True:
            ended = work.finished()
            lines, now = work.lines(), time.monotonic()
            left = countdown.left_s(remaining(), now)
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
