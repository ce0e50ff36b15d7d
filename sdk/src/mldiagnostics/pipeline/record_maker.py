"""Make records of the buffer's entries, in the drain's thread."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.metric_types import NO_UNIT, UNITS
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.records import NO_LABELS, Record
from mldiagnostics.pipeline.values import LARGEST_WHOLE, Unrecordable, keep_text, settle
from mldiagnostics.text.redaction import redact

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.buffer import Entry, PayloadMaker
    from mldiagnostics.pipeline.drops import Drops
    from mldiagnostics.pipeline.records import Value

_tuple = tuple.__new__


class RecordMaker:
    """Makes records of entries, whose values it reads.

    Invalid ones are counted in `drops`.
    """

    def __init__(self, origin: Origin, drops: Drops) -> None:
        self._rank, self._attempt = origin.rank, origin.attempt
        self._incarnation = origin.incarnation
        self._drops = drops
        self._payloads = 0

    def make(self, entry: Entry) -> Record | None:
        """Return the record of an entry.

        None, counted as dropped, if its value cannot be read.
        """
        t, kind, name, kept, step, labels, payload, _ = entry
        try:
            if (
                type(kept) is float
                and labels is None
                and payload is None
                and kind == "metric"
                and type(name) is str
                and type(step) is int
                and -LARGEST_WHOLE <= step <= LARGEST_WHOLE
            ):  # almost all records; without the constructor of a named tuple, which takes longer than the rest
                title, unit = _titled(name)
                return _tuple(Record, (kind, t, title, kept, step, NO_LABELS, self._rank, self._attempt, unit, None))
            title = _name(name)
            value: Value = None
            if type(kept) is float:
                value = kept
            elif isinstance(kept, str):
                kind, payload = "event", {"message": redact(kept)}
            elif isinstance(kept, dict):
                kind, payload = "event", kept
            elif kept is not None:
                value = settle(kept)
            elif kind == "metric":
                raise Unrecordable("bad-value", "None")  # noqa: TRY301 - one way out
            if payload is not None and not isinstance(payload, dict):
                payload, step = self._make_payload(payload, t, step), None
            unit = UNITS.get(title, NO_UNIT) if kind == "metric" else ""
            return Record(
                kind, t, title, value, self._step(step, title), labels or NO_LABELS,
                self._rank, self._attempt, unit, payload,
            )  # fmt: skip
        except Unrecordable as reason:
            self._drops.count(reason.reason, detail=f"{shown(name)}: {reason}")
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            self._drops.count("bad-value", detail=f"{shown(name)}: {type(error).__name__}: {shown(error)}")
        return None

    def _step(self, step: Any, name: str) -> int | None:
        """Return the step as a number, None with a warning if it is invalid.

        The metric is kept without it.
        """
        if step is None or (type(step) is int and -LARGEST_WHOLE <= step <= LARGEST_WHOLE):
            return step
        try:
            return _writable(_whole(step))
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            warn_once("bad-step", f"{name} is recorded without its step: {shown(error)}; pass a whole number")
            return None

    def _make_payload(self, make: PayloadMaker, t: float, step: Any) -> dict[str, object]:
        """Return a payload whose making was deferred to this thread; it contains the step."""
        self._payloads += 1
        number = None if step is None else _whole(step)
        return make(t, number, f"{self._incarnation}-{self._payloads}")


def _whole(step: Any) -> int:
    """Return a step, an int or a kept value; raise `Unrecordable` if not whole."""
    if type(step) is int:
        return step
    number = settle(step)
    if not isinstance(number, float) or not number.is_integer():
        raise Unrecordable("bad-value", f"step {number} is not a whole number")
    return int(number)


def _writable(number: int) -> int:
    if abs(number) > LARGEST_WHOLE:
        raise Unrecordable("bad-value", f"a number of {number.bit_length()} bits")
    return number


@lru_cache(maxsize=1024)
def _titled(name: str) -> tuple[str, str]:
    """Return the name and the unit of a metric."""
    title = _name(name)
    return title, UNITS.get(title, NO_UNIT)


def _name(name: Any) -> str:
    if type(name) is str and name:
        return name if name.isascii() else keep_text(name)
    if isinstance(name, str) and name:
        return keep_text(str(name.value) if hasattr(name, "value") else str(name))
    raise Unrecordable("bad-name", type(name).__name__)
