"""One line of the doctor: fine, broken or unknown; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """State of one part."""

    FINE = "fine"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It could not be checked, mostly for lack of a right."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The state of one part, with the reason and the remedy."""

    part: str
    state: State
    message: str
    remedy: str = ""
    """Command or step that mends it; empty if nothing has to change."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {"part": self.part, "state": str(self.state), "message": self.message, "remedy": self.remedy or None}


def fine(part: str, message: str) -> DoctorFinding:
    """Return a finding about a part that works."""
    return DoctorFinding(part, State.FINE, message)


def broken(part: str, message: str, remedy: str) -> DoctorFinding:
    """Return a finding about a part that does not work."""
    return DoctorFinding(part, State.BROKEN, message, remedy)


def unknown(part: str, message: str, remedy: str = "") -> DoctorFinding:
    """Return a finding about a part that could not be checked."""
    return DoctorFinding(part, State.UNKNOWN, message, remedy)
