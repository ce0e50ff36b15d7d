"""Decide the outcome of a run from the evidence that its process has; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mldiagnostics.text.redaction import redact

Phase: TypeAlias = Literal["Pending", "Active", "Completed", "Failed"]

FINAL: frozenset[str] = frozenset({"Completed", "Failed"})

_EXAMINED = 16_384
"""Characters of a message that are examined for secrets, before it is shortened."""

EXIT_CODE_UNKNOWN = "ExitCodeUnknown"
"""Reason of a completed run whose program ended with a status that Python does not show."""

_CTRL_C = "KeyboardInterrupt"

TERMINATING = "Terminating"
"""Reason of an active run whose program handles a signal."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A phase with its reason, one CamelCase word, and a message."""

    phase: Phase
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExitEvidence:
    """Evidence of how a process ends; strings are empty without evidence.

    Attributes:
        declared: Phase that the program gave to `close()`.
        uncaught: Exception that ended the main thread.
        thread: Exception that ended another thread.
        signal: Signal that ends the process.
        handled: Signal that a handler of the program received; the end of the program decides.
        preempted: Whether the machine is taken away.
        exits: Argument of the last `sys.exit`, if it was called.
        returned: Whether the main program ran to its end, so that it caught that exit; None while it runs or if
            unknown.
    """

    declared: Phase | None = None
    uncaught: str = ""
    thread: str = ""
    signal: str = ""
    handled: str = ""
    preempted: bool = False
    exits: tuple[object, ...] = ()
    returned: bool | None = None


def judge(evidence: ExitEvidence) -> RunOutcome:
    """Return the outcome: the declared phase, else that of the worst evidence.

    Its message has no secrets, on one short line.
    """
    outcome = _judged(evidence)
    return replace(outcome, message=shorten(redact(outcome.message[:_EXAMINED])))


def _judged(evidence: ExitEvidence) -> RunOutcome:
    if evidence.declared is not None:
        return RunOutcome(evidence.declared, "ClosedByProgram")
    if evidence.uncaught.partition(":")[0] == _CTRL_C:
        return RunOutcome("Failed", "Interrupted", "the program was ended by Ctrl-C (SIGINT)")
    if evidence.uncaught:
        return RunOutcome("Failed", "UncaughtException", evidence.uncaught)
    if evidence.preempted:
        return RunOutcome("Failed", "Preempted", "the machine was or will be preempted")
    if evidence.signal:
        return RunOutcome("Failed", "Terminated", f"the process received {evidence.signal}")
    if not evidence.returned and evidence.exits and not is_success(evidence.exits[-1]):
        ended = f"the program ended by sys.exit({evidence.exits[-1]!r})"
        if evidence.handled:
            return RunOutcome("Failed", "Terminated", f"{ended} after {evidence.handled}")
        return RunOutcome("Failed", "ExitCode", ended)
    if evidence.thread:
        return RunOutcome("Failed", "UncaughtExceptionInThread", evidence.thread)
    if evidence.returned is False and not evidence.exits:
        return RunOutcome(
            "Completed",
            EXIT_CODE_UNKNOWN,
            "SystemExit was raised with a computed status, which is unknown; end the program with sys.exit(status)",
        )
    return RunOutcome("Completed")


def outcome_of_status(status: int) -> RunOutcome:
    """Return the outcome of a program that ended with this exit status, 0 to 255."""
    if status == 0:
        return RunOutcome("Completed")
    return RunOutcome("Failed", "ExitCode", f"the program ended with status {status}")


def terminating(signal: str) -> RunOutcome:
    """Return the phase while a handler of the program handles a signal.

    It may save, exit or continue.
    """
    return RunOutcome("Active", TERMINATING, f"the process received {signal}, which a handler of the program handles")


def is_success(exit_code: object) -> bool:
    """Return whether Python turns this argument of `sys.exit` into status 0."""
    return exit_code is None or (isinstance(exit_code, int) and exit_code % 256 == 0)


def shorten(text: str, limit: int = 300) -> str:
    """Return a string of at most `limit` characters on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
