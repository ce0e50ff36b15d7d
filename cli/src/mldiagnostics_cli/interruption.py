"""Ctrl-C of a command that has work to stop.

The first one stops it gently, a second one ends the program at once.

Python's own Ctrl-C is an exception between any two instructions, also inside asyncio's start and end, where it prints
a traceback or is lost. Here it is an event of the loop, which is handled at any moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

from mldiagnostics_cli.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


T = TypeVar("T")


class Interruption:
    """Handler of Ctrl-C: it stops the current block's work, or the program."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self._stop: Callable[[], None] | None = None
        self.is_requested = False

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call a function at the first Ctrl-C while the block runs.

        The function lets the block end early.

        The second Ctrl-C cancels the block.
        """
        outer, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = outer

    def request(self) -> None:
        """Handle Ctrl-C."""
        is_first, self.is_requested = not self.is_requested, True
        if is_first and self._stop is not None:
            self._stop()
        else:
            _exit_at_the_next()
            self._task.cancel()


def run_interruptibly(work: Callable[[Interruption], Awaitable[T]]) -> T:
    """Run work in an event loop to its end, and return its result.

    Ctrl-C outside of the blocks of `Interruption.stopping` cancels the work, and then ends the program with its code.
    """
    before = signal.signal(signal.SIGINT, exit_at_once)  # nothing to stop yet
    try:
        return asyncio.run(_run(work))
    finally:
        signal.signal(signal.SIGINT, before)


def exit_at_once(*_: object) -> NoReturn:
    """End the program without waiting for its threads, which may wait for a network."""
    os._exit(INTERRUPTED)


async def _run(work: Callable[[Interruption], Awaitable[T]]) -> T:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    interruption = Interruption(task)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interruption.request)
    try:
        return await work(interruption)
    except asyncio.CancelledError:
        exit_at_once()
    finally:
        _exit_at_the_next()  # the result is printed


def _exit_at_the_next() -> None:
    asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
    signal.signal(signal.SIGINT, exit_at_once)
