"""A log behind an object of the program, with `read_cloud_logging_entries`."""

from __future__ import annotations

import contextlib
import inspect
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.events.conversion import parse
from mldiagnostics.goodput.log.lines import LoggedPayload
from mldiagnostics.goodput.log.overlap import OVERLAP, OverlapWindow
from mldiagnostics.goodput.log.shapes import RepeatFilter, take_shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from mldiagnostics.goodput.events.listener import EventListener


_CallForm: TypeAlias = "Callable[[datetime | None, datetime | None], tuple[tuple[Any, ...], dict[str, Any]]]"

_CALL_FORMS: tuple[_CallForm, ...] = (
    lambda start, end: ((start, end), {}),
    lambda start, end: ((start, end, None), {}),  # if the peer's third argument, the last entry, has no default
    lambda start, end: ((), {"start_time": start, "end_time": end}),
    lambda start, end: ((), {"start_time": start, "end_time": end, "last_entry_info": None}),
    lambda _start, _end: ((), {}),
)
"""Forms of a call for a window; the first one that the object accepts is used."""


class _Result(NamedTuple):
    """Payloads, and the end that the object returned with them, if any."""

    payloads: list[Any]
    end: datetime | None

    def known_until(self, now: datetime) -> datetime | None:
        """Return the moment from which the next result can differ; None if it is unknown.

        The time in the last payload is earlier than the end if entries are dated back.
        """
        if self.end is None:
            return None
        parsed = parse(self.payloads[-1], rank=0, run="", logged=None)
        events = () if isinstance(parsed, str) else parsed
        return min(self.end, now, *(datetime.fromtimestamp(event.t / 1e6, timezone.utc) for event in events))


class CallbackLog:
    """Reads the log behind an object with `read_cloud_logging_entries`.

    The method is called with a start and an end, or without arguments if it has no parameters. The result is a list of
    payloads, or a tuple of the list and its end, `(timestamp, id)`. An object can compare bounds with the time at which
    an entry was logged, or with the time in the entry. So every call reads all entries, and those of the last result
    are skipped; if the object returns an end, the next call starts there, less `OVERLAP`. See decision 0014.

    `retention` is how far back a call for all entries goes. With `job_name`, payloads of other jobs are skipped. A
    `live` reader without retention also calls without bounds, as the peer does: an object that compares the times in
    entries can have later ones than now.
    """

    jobs = ()

    def __init__(
        self, reader: Any, *, job_name: str | None = None, retention: timedelta | None = None, live: bool = False
    ) -> None:
        self._reader = reader
        self._job_name = job_name
        self._retention = retention
        self._overlap = OverlapWindow(retention)
        self._form: _CallForm | None = None
        self._repeats = RepeatFilter(), RepeatFilter()
        self._unbounded = live and retention is None
        self._known_until: datetime | None = None

    @property
    def name(self) -> str:
        """The class of the object."""
        return f"cloud_logger={type(self._reader).__name__}"

    def read_new(self, history: EventListener, now: datetime) -> None:
        """See `Log.read_new`."""
        self._feed(history, now)
        while history.begin_again():
            self._overlap.begin_again()
            self._repeats, self._known_until = (RepeatFilter(), RepeatFilter()), None
            self._feed(history, now)

    def _feed(self, history: EventListener, now: datetime) -> None:
        for repeats, window in zip(self._repeats, self._windows(now), strict=False):
            result = self._call(*window)
            others = take_shaped(repeats.new_in(result.payloads), self._job_name, history)
            self._overlap.add_new(self._logged(others), now, history)
            if result.payloads:
                self._known_until = result.known_until(now)

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:
        """See `Log.payloads`."""
        yield from self._logged(self._call(self._first(now), now).payloads)

    def exists(self) -> bool:
        """Return true: the object is the log."""
        return True

    def position(self) -> dict[str, object]:
        """Return an empty position: the next process reads from the beginning."""
        return {}

    def resume(self, position: dict[str, object]) -> None:
        """Raise `ValueError`: the object can have another log in each process."""
        raise ValueError(f"{self.name}: has no positions such as {position!r}")

    def _windows(self, now: datetime) -> list[tuple[datetime | None, datetime | None]]:
        """Return the bounds of each call."""
        if self._known_until is not None:
            return [(self._known_until - OVERLAP, None if self._unbounded else now)]
        return [(None, None), (self._first(now), now)] if self._unbounded else [(self._first(now), now)]

    def _first(self, now: datetime) -> datetime:
        return OverlapWindow(self._retention).start(now)

    def _call(self, start: datetime | None, end: datetime | None) -> _Result:
        window = start and start.astimezone(timezone.utc), end and end.astimezone(timezone.utc)
        try:
            read = self._reader.read_cloud_logging_entries
            if self._form is None:
                self._form = _call_form(read)
            args, options = self._form(*window)
            return _result(read(*args, **options))
        except Exception as error:
            raise LogUnreadable(f"{self.name}: read_cloud_logging_entries() failed: {error!r}") from error

    def _logged(self, payloads: list[Any]) -> list[LoggedPayload]:
        return [LoggedPayload(payload, None, 0, "") for payload in payloads if self._is_ours(payload)]

    def _is_ours(self, payload: Any) -> bool:
        return (
            self._job_name is None or not isinstance(payload, dict) or payload.get("job_name") in (self._job_name, None)
        )


def _result(returned: Any) -> _Result:
    payloads, end = returned, None
    if isinstance(returned, tuple):
        payloads = returned[0]
        cursor = returned[1] if len(returned) > 1 else None
        moment = cursor[0] if isinstance(cursor, tuple | list) and cursor else None
        end = moment if isinstance(moment, datetime) and moment.tzinfo is not None else None
    return _Result(payloads if isinstance(payloads, list) else list(payloads or ()), end)


def _call_form(read: Any) -> _CallForm:
    try:
        signature = inspect.signature(read)
    except ValueError:  # a function without a signature
        return _CALL_FORMS[0]
    for form in _CALL_FORMS:
        args, options = form(None, None)
        with contextlib.suppress(TypeError):
            signature.bind(*args, **options)
            return form
    return _CALL_FORMS[0]  # the call raises an error that explains it
