"""The phase of a process or a run as of a moment; pure."""

from __future__ import annotations

from typing import cast, get_args

from mldiagnostics.lifecycle.outcome import TERMINATING, Phase, RunOutcome
from mldiagnostics.text.timestamps import timestamp

HEARTBEATS_MISSED = 3
"""After how many intervals of silence a process counts as lost."""

_PHASES = frozenset(get_args(Phase))


def phase_at(outcome: RunOutcome, *, heartbeat: float | None, interval_s: float | None, now: float) -> RunOutcome:
    """Return the phase as of `now`.

    An active run that was silent for three intervals is Failed, for the reason `Lost`.
    """
    if outcome.phase != "Active" or heartbeat is None or not interval_s:
        return outcome
    if now - heartbeat <= HEARTBEATS_MISSED * interval_s:
        return outcome
    since = (timestamp(heartbeat) or "an unknown time").partition(".")[0]
    silence = f"no sign of life since {since} UTC, one is due every {interval_s:g} s"
    if outcome.reason == TERMINATING:
        return RunOutcome("Failed", "Terminated", f"{outcome.message}; {silence}: killed before it had ended")
    return RunOutcome("Failed", "Lost", f"{silence}: killed, or the host is gone")


def phase_named(text: object) -> Phase:
    """Return a phase by its name; Pending for anything else."""
    return cast("Phase", text) if isinstance(text, str) and text in _PHASES else "Pending"
