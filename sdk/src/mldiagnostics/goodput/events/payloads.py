"""Payloads of a recorder's events, with the keys of ml-goodput-measurement.

They are made by the thread that drains the buffer, not by the training.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import LARGEST_WHOLE, Unrecordable, keep

if TYPE_CHECKING:
    from mldiagnostics.pipeline.buffer import PayloadMaker


RECORD_NAME = "goodput"
"""Name of the records that hold goodput events."""

MAX_TEXT = 200
"""Characters of an event type or of the cause of a disruption; `payload` rejects more."""

MAX_NAME = 1000
"""Characters of the names of job and logger; each event has the name of its job."""

MAX_STEP = 2**31 - 1


def payload_maker(
    job_name: str, key: str, *, step_key: str = "", needs_step: bool = False, **more: Any
) -> PayloadMaker:
    """Return a function that makes the payload of an event.

    Args:
        job_name: Name of the job.
        key: Key of the moment.
        step_key: Key of the step.
        needs_step: Whether an event without a step is dropped.
        **more: Further keys with strings or numbers; converting any other value may raise anything.
    """

    def make(t: float, step: int | None, event_id: str) -> dict[str, object]:
        payload: dict[str, object] = {"job_name": job_name}
        if step is not None and 0 <= step <= MAX_STEP:
            payload[step_key] = step
        elif step is not None or needs_step:
            raise Unrecordable("bad-value", f"{key} of step {step}")
        for name, value in more.items():
            payload[name] = value if isinstance(value, str) else _whole(name, int(value))
        payload[key] = round(t, 6)
        if event_id:
            payload["event_id"] = event_id
        return payload

    return make


def _whole(name: str, number: int) -> int:
    if abs(number) > LARGEST_WHOLE:
        raise Unrecordable("bad-value", f"{name} with {number.bit_length()} bits")
    return number


def entry_maker(job_name: str, entry: object) -> PayloadMaker:
    """Return a function that makes the payload of an entry, as the entry is now.

    The function raises `Unrecordable` if the entry is not a dict of plain values.
    """
    kept: object = None
    with suppress(Exception):  # methods of a foreign object may raise anything
        kept = keep(entry)[0]

    def make(t: float, step: int | None, event_id: str) -> dict[str, object]:  # noqa: ARG001 - the entry has its own times
        if not isinstance(kept, dict):
            raise Unrecordable("bad-value", "an entry that is not a dict of plain values")
        return {**kept, "job_name": job_name, **({"event_id": event_id} if event_id else {})}

    return make


def text(value: object) -> str:
    """Return any value as a string; for a member of a string enum its value."""
    return str.__str__(value) if issubclass(type(value), str) else shown(value)


def short_text(value: object) -> str:
    """Return any value as a string of at most 200 characters; warn once if it is cut."""
    whole = text(value)
    if len(whole) <= MAX_TEXT:
        return whole
    warn_once(
        "goodput-text", f"{shown(whole[:40])!r}…: {len(whole)} characters; only the first {MAX_TEXT} are recorded"
    )
    return whole[:MAX_TEXT]
