"""How a run ended, judged from what a process saw of its own end; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Phase: TypeAlias = Literal["Pending", "Active", "Completed", "Failed"]

FINAL: frozenset[str] = frozenset({"Completed", "Failed"})

TERMINATING = "Terminating"
"""Reason of an active run whose program deals with a signal."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A phase with its reason, one CamelCase word, and a sentence."""

    phase: Phase
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExitEvidence:
    """What was seen. The texts are empty where nothing was.

    `signal` is the one that ends the process. `handled` is the one that a handler of the program has taken: how the
    program ends after it says what that was.

    `exits` has the argument of the last `sys.exit`, if one was called. `returned` says whether the main program ran
    to its end, so that somebody caught that; None: it still runs, or that cannot be told.
    """

    said: Phase | None = None
    uncaught: str = ""
    thread: str = ""
    signal: str = ""
    handled: str = ""
    preempted: bool = False
    exits: tuple[object, ...] = ()
    returned: bool | None = None


def judge(seen: ExitEvidence) -> RunOutcome:
    """Return how the run ended: what the program says of itself first, then the worst that was seen."""
    if seen.said is not None:
        return RunOutcome(seen.said, "ClosedByProgram")
    if seen.uncaught:
        return RunOutcome("Failed", "UncaughtException", seen.uncaught)
    if seen.preempted:
        return RunOutcome("Failed", "Preempted", "the machine was or will be taken away")
    if seen.signal:
        return RunOutcome("Failed", "Terminated", f"the process got {seen.signal}")
    if not seen.returned and seen.exits and not is_success(seen.exits[-1]):
        ended = f"the program ended by sys.exit({shorten(repr(seen.exits[-1]))})"
        if seen.handled:
            return RunOutcome("Failed", "Terminated", f"{ended} after {seen.handled}")
        return RunOutcome("Failed", "ExitCode", ended)
    if seen.thread:
        return RunOutcome("Failed", "UncaughtExceptionInThread", seen.thread)
    if seen.returned is False and not seen.exits:
        return RunOutcome(
            "Completed", "ExitCodeUnknown", "SystemExit was raised without sys.exit, its status is not seen"
        )
    return RunOutcome("Completed")


def terminating(signal: str) -> RunOutcome:
    """Return the phase while a handler of the program deals with a signal: it may save, end, or go on."""
    return RunOutcome("Active", TERMINATING, f"the process got {signal}, which a handler of the program has taken")


def is_success(exit_code: object) -> bool:
    """Tell whether Python turns this argument of `sys.exit` into status 0."""
    return exit_code is None or (isinstance(exit_code, int) and exit_code % 256 == 0)


def shorten(text: str, limit: int = 300) -> str:
    """Return a text of at most `limit` characters, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
