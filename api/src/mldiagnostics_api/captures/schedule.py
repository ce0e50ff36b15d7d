"""Start time and deadline of a capture."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics.capture.model import Recording

from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import TriggerCapture

DEFAULT_LEAD_MS: Final = 2000
DEADLINE_MARGIN_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class CaptureSchedule:
    """Times of a capture."""

    lead_ms: int
    """Time until the common start; 0 starts every target at once."""
    start: datetime
    deadline: datetime


def schedule(
    trigger: TriggerCapture, duration_ms: int, *, targets: int, now: datetime
) -> CaptureSchedule | CaptureRefusal:
    """Return the times of a capture; the deadline covers recording and storing.

    Args:
        trigger: The request.
        duration_ms: Duration of the recording in milliseconds.
        targets: Number of targets.
        now: Current time.
    """
    lead_ms = trigger.start_lead_milliseconds
    if lead_ms is None:
        lead_ms = DEFAULT_LEAD_MS if targets > 1 and trigger.recording is not Recording.PAST else 0
    deadline_ms = lead_ms + 2 * duration_ms + DEADLINE_MARGIN_MS
    if trigger.deadline_seconds is not None:
        deadline_ms = 1000 * trigger.deadline_seconds
    if deadline_ms <= lead_ms + duration_ms:
        return CaptureRefusal(
            RefusalReason.DEADLINE_TOO_SHORT,
            f"deadlineSeconds {deadline_ms / 1000:g}: not longer than the lead of {lead_ms / 1000:g} s and the "
            f"duration of {duration_ms / 1000:g} s together; use a larger value",
        )
    return CaptureSchedule(lead_ms, now + timedelta(milliseconds=lead_ms), now + timedelta(milliseconds=deadline_ms))
