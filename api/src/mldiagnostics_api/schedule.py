"""When a capture starts and when it is given up."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.request import CaptureRefusal
from mldiagnostics_api.v1alpha1 import TriggerCapture

DEFAULT_LEAD_MS: Final = 2000
DEADLINE_MARGIN_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class CaptureSchedule:
    """The moments of a capture."""

    lead_ms: int
    """How far ahead the common start lies; 0: every target starts at once."""
    start: datetime
    deadline: datetime


def schedule(
    trigger: TriggerCapture, duration_ms: int, *, dialled: int, now: datetime
) -> CaptureSchedule | CaptureRefusal:
    """Decide the moments for so many targets; the deadline covers recording, serialisation and storing."""
    lead_ms = trigger.start_lead_milliseconds
    if lead_ms is None:
        lead_ms = DEFAULT_LEAD_MS if dialled > 1 else 0
    deadline_ms = lead_ms + 2 * duration_ms + DEADLINE_MARGIN_MS
    if trigger.deadline_seconds is not None:
        deadline_ms = 1000 * trigger.deadline_seconds
    if deadline_ms <= lead_ms + duration_ms:
        return CaptureRefusal(
            RefusalReason.DEADLINE_TOO_SHORT,
            f"deadlineSeconds {deadline_ms / 1000:g} leaves no time after a lead of {lead_ms / 1000:g} s and a "
            f"duration of {duration_ms / 1000:g} s; ask for more",
        )
    return CaptureSchedule(lead_ms, now + timedelta(milliseconds=lead_ms), now + timedelta(milliseconds=deadline_ms))
