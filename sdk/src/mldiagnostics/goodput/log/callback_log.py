"""A log behind an object of somebody else's, with `read_cloud_logging_entries` as ml-goodput-measurement calls it."""

from __future__ import annotations

import contextlib
import inspect
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.log.lines import LoggedPayload
from mldiagnostics.goodput.log.overlap import OVERLAP, OverlapWindow
from mldiagnostics.goodput.log.shapes import RepeatFilter, take_shaped
from mldiagnostics.goodput.payload import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from mldiagnostics.goodput.listener import EventListener


_Way: TypeAlias = "Callable[[datetime | None, datetime | None], tuple[tuple[Any, ...], dict[str, Any]]]"

_WAYS: tuple[_Way, ...] = (
    lambda start, end: ((start, end), {}),
    lambda start, end: ((start, end, None), {}),  # where the peer's third argument, the last entry, has no default
    lambda start, end: ((), {"start_time": start, "end_time": end}),
    lambda start, end: ((), {"start_time": start, "end_time": end, "last_entry_info": None}),
    lambda _start, _end: ((), {}),
)
"""Arguments for a window, the first that an object takes."""


class _Answer(NamedTuple):
    """Payloads, and where the object says that they end, None if it does not."""

    payloads: list[Any]
    end: datetime | None

    def known_until(self, now: datetime) -> datetime | None:
        """Return from when on the next answer may differ, by whichever clock; None if the object does not say.

        The time in the last payload is earlier than the end where entries are dated back.
        """
        if self.end is None:
            return None
        found = parse(self.payloads[-1], rank=0, run="", logged=None)
        events = () if isinstance(found, str) else found
        return min(self.end, now, *(datetime.fromtimestamp(event.t / 1e6, timezone.utc) for event in events))


class CallbackLog:
    """Asks `read_cloud_logging_entries(start_time, end_time)`, also by name, or without arguments if it takes none.

    The answer is a list of payloads, or a tuple of it and where it ends, `(timestamp, id)`. Nobody knows by which clock
    an object compares: by the moment at which an entry was logged, or by the time in it. So the object is asked for
    all each time, and what its last answer had is passed over. An object that returns where its answer ends is asked
    from there, less `OVERLAP`. See decision 0014.

    `retention` is how far back a question for all goes. With `job_name`, payloads of other jobs are passed over. A
    `live` reader without retention also asks without bounds, as the peer does: objects that compare with the events'
    own times know later ones than now.
    """

    jobs = ()

    def __init__(
        self, reader: Any, *, job_name: str | None = None, retention: timedelta | None = None, live: bool = False
    ) -> None:
        self._reader = reader
        self._job_name = job_name
        self._retention = retention
        self._overlap = OverlapWindow(retention)
        self._way: _Way | None = None
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
            answer = self._ask(*window)
            others = take_shaped(repeats.new_in(answer.payloads), self._job_name, history)
            self._overlap.take(self._told(others), now, history)
            if answer.payloads:
                self._known_until = answer.known_until(now)

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:
        """See `Log.payloads`."""
        yield from self._told(self._ask(self._first(now), now).payloads)

    def exists(self) -> bool:
        """Return true: a service has a log of any name."""
        return True

    def position(self) -> dict[str, object]:
        """Return nothing: the next process asks from the beginning."""
        return {}

    def resume(self, position: dict[str, object]) -> None:
        """Raise `ValueError`: nobody knows whether it is the same log."""
        raise ValueError(f"{self.name} has no positions, not {position!r}")

    def _windows(self, now: datetime) -> list[tuple[datetime | None, datetime | None]]:
        """Return the bounds of each question; one that all begin with is the same as that of a new reader."""
        if self._known_until is not None:
            return [(self._known_until - OVERLAP, None if self._unbounded else now)]
        return [(None, None), (self._first(now), now)] if self._unbounded else [(self._first(now), now)]

    def _first(self, now: datetime) -> datetime:
        return OverlapWindow(self._retention).start(now)

    def _ask(self, start: datetime | None, end: datetime | None) -> _Answer:
        window = start and start.astimezone(timezone.utc), end and end.astimezone(timezone.utc)
        try:
            read = self._reader.read_cloud_logging_entries
            if self._way is None:
                self._way = _way_to_ask(read)
            args, options = self._way(*window)
            return _answer(read(*args, **options))
        except Exception as error:
            raise LogUnreadable(f"{self.name} gives no entries: {error!r}") from error

    def _told(self, payloads: list[Any]) -> list[LoggedPayload]:
        return [LoggedPayload(payload, None, 0, "") for payload in payloads if self._is_ours(payload)]

    def _is_ours(self, payload: Any) -> bool:
        return (
            self._job_name is None or not isinstance(payload, dict) or payload.get("job_name") in (self._job_name, None)
        )


def _answer(told: Any) -> _Answer:
    payloads, end = told, None
    if isinstance(told, tuple):
        payloads = told[0]
        cursor = told[1] if len(told) > 1 else None
        moment = cursor[0] if isinstance(cursor, tuple | list) and cursor else None
        end = moment if isinstance(moment, datetime) and moment.tzinfo is not None else None
    return _Answer(payloads if isinstance(payloads, list) else list(payloads or ()), end)


def _way_to_ask(read: Any) -> _Way:
    try:
        signature = inspect.signature(read)
    except ValueError:  # a function that does not say
        return _WAYS[0]
    for way in _WAYS:
        args, options = way(None, None)
        with contextlib.suppress(TypeError):
            signature.bind(*args, **options)
            return way
    return _WAYS[0]  # it says itself what is wrong with that
