"""Slots: which one is due, its place in the jitter, and the name of its capture.

A slot is known by its nominal time. The name of its capture is made of the schedule, the target and this time alone, so
that each leader gives it the same name and the API server accepts only one.
"""

from collections.abc import Collection
from hashlib import sha256
from typing import Final

from mldiagnostics_api.schedules.timing import Timing

LATEST_S: Final = 120.0
"""A slot is started so much late at most, for example while the leader changes; later, it is missed."""
_PREFIX: Final = 40
_DIGITS: Final = 12


def due_slot(timing: Timing, now: float, *, offset_s: float = 0.0, done: Collection[float] = ()) -> float | None:
    """Return the nominal time of the slot to start now; None if there is none.

    Only the newest slot counts. Earlier ones are missed and not made up.

    Args:
        timing: Times of the schedule.
        now: Current time.
        offset_s: Time from the nominal time to the start.
        done: Slots that were started or refused.
    """
    newest: float | None = None
    slot = timing.after(now - offset_s - LATEST_S)
    while slot is not None and slot + offset_s <= now:
        newest, slot = slot, timing.after(slot)
    return None if newest in done else newest


def next_start(timing: Timing, now: float, *, offset_s: float = 0.0) -> float | None:
    """Return the next time at which a slot starts; None if there is none."""
    slot = timing.after(now - offset_s)
    return None if slot is None else slot + offset_s


def jitter_offset(uid: str, target: str, jitter_s: float) -> float:
    """Return the fixed offset of a target's starts, from 0 to `jitter_s`."""
    share = int(_digest(uid, target)[:8], 16) / 16**8
    return float(int(share * jitter_s))


def capture_name(schedule: str, uid: str, *, target: str, cause: str) -> str:
    """Return the name of the capture of a target that a slot or a trigger causes.

    Args:
        schedule: Name of the schedule.
        uid: Its uid; a schedule that was deleted and created again makes other captures.
        target: Run or other target.
        cause: Key of the capture among those of the target, see `slot_cause` and `trigger_cause`.
    """
    return f"{schedule[:_PREFIX].rstrip('-.')}-{_digest(uid, target, cause)[:_DIGITS]}"


def slot_cause(slot: float) -> str:
    """Return the key of the capture of a slot."""
    return f"slot {slot:.0f}"


def trigger_cause(trigger: str, time: float) -> str:
    """Return the key of a capture of a trigger."""
    return f"{trigger} {time:.0f}"


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()
