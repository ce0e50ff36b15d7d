"""The attempts of a run as rows, out of its run.json; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.attempt_numbers import attempt_numbers, earlier_attempts
from mldiagnostics.runs.phase import phase_named
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.lifecycle.outcome import Phase
    from mldiagnostics.runs.row import RunRow


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at a run. Times are Unix seconds, None where unknown."""

    attempt: int | None
    incarnation: str
    started: float | None
    ended: float | None
    phase: Phase
    reason: str
    message: str
    cause: str = ""
    """Why it ended, as pods, nodes and events of a cluster show it; one CamelCase word."""
    cause_message: str = ""
    """The object that shows the cause, and its words."""
    start_up_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds from its creation to its first step by stage, as a cluster shows them."""

    @property
    def start_up(self) -> float | None:
        """Seconds from its creation to its first step, or to its end; None where unknown."""
        return sum(self.start_up_s.values()) if self.start_up_s else None

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as JSON; times are RFC 3339, unknown values are null."""
        return {
            "attempt": self.attempt,
            "incarnation": self.incarnation or None,
            "startTime": timestamp(self.started),
            "completionTime": timestamp(self.ended),
            "phase": self.phase,
            "reason": self.reason or None,
            "message": self.message or None,
            "cause": self.cause or None,
            "causeMessage": self.cause_message or None,
            "startUpSeconds": dict(self.start_up_s) or None,
        }


def rows_of_attempts(run: RunRow, last_seen: Mapping[str, float]) -> list[AttemptRow]:
    """Return the attempts of a run (at most the last 101), the oldest first.

    Args:
        run: The run.
        last_seen: Time of the last record of processes, by incarnation: an attempt that was lost ended then.
    """
    earlier = earlier_attempts(run.document)
    rows = []
    for number, fields in zip(attempt_numbers(earlier), earlier, strict=True):
        incarnation, ended = fields.text("incarnation"), fields.number("ended")
        seen = last_seen.get(incarnation)
        rows.append(
            AttemptRow(
                attempt=number,
                incarnation=incarnation,
                started=fields.number("started"),
                ended=ended if seen is None else max(seen, ended or seen),
                phase=phase_named(fields.fields.get("phase")),
                reason=fields.text("reason"),
                message=fields.text("message"),
            )
        )
    incarnation = FieldReader(run.document).text("incarnation")
    return [*rows, AttemptRow(run.attempt, incarnation, run.started, run.ended, run.phase, run.reason, run.message)]
