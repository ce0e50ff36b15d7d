"""What a recorder's events say: payloads with the keys of ml-goodput-measurement, made when a drain has time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import LARGEST_WHOLE, Unrecordable, keep

if TYPE_CHECKING:
    from mldiagnostics.pipeline.buffer import PayloadMaker

__all__ = ["MAX_NAME", "MAX_TEXT", "RECORD_NAME", "entry_maker", "payload_maker", "short_text", "text"]

RECORD_NAME = "goodput"
"""Name of the records that hold goodput events."""

MAX_TEXT = 200
"""How many characters the type of an event or the cause of a disruption may have; `payload` reads no more."""

MAX_NAME = 1000
"""How many characters the names of job and logger may have: each event carries the name of its job."""

_MAX_STEP = 2**31 - 1


def payload_maker(
    job_name: str, key: str, *, step_key: str = "", needs_step: bool = False, **beside: Any
) -> PayloadMaker:
    """Return what makes the payload of an event: `key` gets the moment, `step_key` the step, `beside` is beside them.

    It raises whatever those raise that are no texts and no numbers.
    """

    def tell(t: float, step: int | None, event_id: str) -> dict[str, object]:
        told: dict[str, object] = {"job_name": job_name}
        if step is not None and 0 <= step <= _MAX_STEP:
            told[step_key] = step
        elif step is not None or needs_step:
            raise Unrecordable("bad-value", f"{key} of step {step}")
        for name, value in beside.items():
            told[name] = value if isinstance(value, str) else _whole(name, int(value))
        told[key] = round(t, 6)
        if event_id:
            told["event_id"] = event_id
        return told

    return tell


def _whole(name: str, number: int) -> int:
    if abs(number) > LARGEST_WHOLE:
        raise Unrecordable("bad-value", f"{name} with {number.bit_length()} bits")
    return number


def entry_maker(job_name: str, entry: object) -> PayloadMaker:
    """Return what makes the payload of a whole entry, as it is now. It raises if that is no dict of plain values."""
    kept: object = None
    with suppress(Exception):  # a foreign object may raise anything when it is looked at
        kept = keep(entry)[0]

    def tell(t: float, step: int | None, event_id: str) -> dict[str, object]:  # noqa: ARG001 - the entry says when
        if not isinstance(kept, dict):
            raise Unrecordable("bad-value", "an entry that is no dict of plain values")
        return {**kept, "job_name": job_name, **({"event_id": event_id} if event_id else {})}

    return tell


def text(thing: object) -> str:
    """Return a text for what should be one; of a member of an enum its value."""
    return str.__str__(thing) if issubclass(type(thing), str) else shown(thing)


def short_text(thing: object) -> str:
    """Return a text for what should be one, cut after as many characters as readers take, with one complaint."""
    whole = text(thing)
    if len(whole) <= MAX_TEXT:
        return whole
    warn_once(
        "goodput-text", f"{shown(whole[:40])!r}…: {len(whole)} characters; only the first {MAX_TEXT} are recorded"
    )
    return whole[:MAX_TEXT]
