"""A log behind an object of somebody else's, with `read_cloud_logging_entries` as ml-goodput-measurement calls it."""

from __future__ import annotations

import contextlib
import inspect
from datetime import timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.log.lines import Told
from mldiagnostics.goodput.log.overlap import Overlap
from mldiagnostics.goodput.log.shapes import Repeats, take_shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.log.lines import Listener


_Way: TypeAlias = "Callable[[datetime | None, datetime | None], tuple[tuple[Any, ...], dict[str, Any]]]"

_WAYS: tuple[_Way, ...] = (
    lambda start, end: ((start, end), {}),
    lambda start, end: ((start, end, None), {}),  # where the peer's third argument, the last entry, has no default
    lambda start, end: ((), {"start_time": start, "end_time": end}),
    lambda start, end: ((), {"start_time": start, "end_time": end, "last_entry_info": None}),
    lambda _start, _end: ((), {}),
)
"""Arguments for a window, the first that an object takes."""


class GivenLog:
    """Asks `read_cloud_logging_entries(start_time, end_time)`, also by name, or without arguments if it takes none.

    The answer is a list of payloads, or a tuple of it and where it ends. `retention` is how far back the first question
    goes. With `job_name`, payloads of other jobs are passed over. The first question of a `live` reader is also asked
    without bounds, as by the peer: objects that compare with the events' own times know later ones than now.
    """

    jobs = ()

    def __init__(
        self, reader: Any, *, job_name: str | None = None, retention: timedelta | None = None, live: bool = False
    ) -> None:
        self._reader = reader
        self._job_name = job_name
        self._retention = retention
        self._overlap = Overlap(retention)
        self._way: _Way | None = None
        self._repeats = Repeats()
        self._asks_for_all = live and retention is None

    @property
    def name(self) -> str:
        """The class of the object."""
        return f"cloud_logger={type(self._reader).__name__}"

    def read_new(self, history: Listener, now: datetime) -> None:
        """See `Log.read_new`."""
        start = self._overlap.start(now)
        if self._asks_for_all:
            self._take(self._ask(None, None), now, history)
            self._asks_for_all = False
        self._take(self._ask(start, now), now, history)

    def payloads(self, now: datetime) -> Iterator[Told]:
        """See `Log.payloads`."""
        yield from self._told(self._ask(Overlap(self._retention).start(now), now))

    def position(self) -> dict[str, object]:
        """Return nothing: the next process asks from the beginning."""
        return {}

    def resume(self, position: dict[str, object]) -> None:
        """Raise `ValueError`: nobody knows whether it is the same log."""
        raise ValueError(f"{self.name} has no positions, not {position!r}")

    def _take(self, answer: list[Any], now: datetime, history: Listener) -> None:
        others = take_shaped(self._repeats.new_in(answer), self._job_name, history)
        self._overlap.take(self._told(others), now, history)

    def _ask(self, start: datetime | None, end: datetime | None) -> list[Any]:
        window = start and start.astimezone(timezone.utc), end and end.astimezone(timezone.utc)
        try:
            read = self._reader.read_cloud_logging_entries
            if self._way is None:
                self._way = _way_to_ask(read)
            args, options = self._way(*window)
            answer = read(*args, **options)
            payloads = answer[0] if isinstance(answer, tuple) else answer
            return payloads if isinstance(payloads, list) else list(payloads or ())
        except Exception as error:
            raise LogUnreadable(f"{self.name} gives no entries: {error!r}") from error

    def _told(self, payloads: list[Any]) -> list[Told]:
        return [Told(payload, None, 0, "") for payload in payloads if self._is_ours(payload)]

    def _is_ours(self, payload: Any) -> bool:
        return (
            self._job_name is None or not isinstance(payload, dict) or payload.get("job_name") in (self._job_name, None)
        )


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
