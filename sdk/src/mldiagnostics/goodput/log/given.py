"""A log behind an object of somebody else's, with `read_cloud_logging_entries` as ml-goodput-measurement calls it."""

from __future__ import annotations

import inspect
from datetime import timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.log.lines import Told
from mldiagnostics.goodput.log.overlap import Overlap
from mldiagnostics.goodput.log.shapes import already_known, take_shaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.log.lines import Listener


_REMEMBERED = 2**14
"""Payloads of ten minutes, and more."""


class GivenLog:
    """Asks `read_cloud_logging_entries(start_time, end_time)`, or without arguments if it takes none.

    The answer is a list of payloads, or a tuple of it and where it ends. `retention` is how far back the first question
    goes. With `job_name`, payloads of other jobs are passed over.
    """

    def __init__(self, reader: Any, *, job_name: str | None = None, retention: timedelta | None = None) -> None:
        self._reader = reader
        self._job_name = job_name
        self._retention = retention
        self._overlap = Overlap(retention)
        self._takes_window: bool | None = None
        self._answer: list[Any] = []
        """The end of the last answer, which the next one repeats."""

    @property
    def name(self) -> str:
        """The class of the object."""
        return f"cloud_logger={type(self._reader).__name__}"

    def read_new(self, history: Listener, now: datetime) -> None:
        """See `Log.read_new`."""
        answer = self._ask(self._overlap.start(now), now)
        new = answer[already_known(self._answer, answer) :]
        self._answer = answer[-_REMEMBERED:]
        others = take_shaped(new, self._job_name, history)
        self._overlap.take(self._told(others), now, history)

    def payloads(self, now: datetime) -> Iterator[Told]:
        """See `Log.payloads`."""
        yield from self._told(self._ask(Overlap(self._retention).start(now), now))

    def position(self) -> dict[str, object]:
        """Return nothing: the next process asks from the beginning."""
        return {}

    def resume(self, position: dict[str, object]) -> None:
        """Raise `ValueError`: nobody knows whether it is the same log."""
        raise ValueError(f"{self.name} has no positions, not {position!r}")

    def _ask(self, start: datetime, end: datetime) -> list[Any]:
        window = start.astimezone(timezone.utc), end.astimezone(timezone.utc)
        try:
            read = self._reader.read_cloud_logging_entries
            if self._takes_window is None:
                self._takes_window = _takes_two(read)
            answer = read(*window) if self._takes_window else read()
            payloads = answer[0] if isinstance(answer, tuple) else answer
            return list(payloads or ())
        except Exception as error:
            raise LogUnreadable(f"{self.name} gives no entries: {error!r}") from error

    def _told(self, payloads: list[Any]) -> list[Told]:
        return [Told(payload, None, 0, "") for payload in payloads if self._is_ours(payload)]

    def _is_ours(self, payload: Any) -> bool:
        return (
            self._job_name is None or not isinstance(payload, dict) or payload.get("job_name") in (self._job_name, None)
        )


def _takes_two(read: Any) -> bool:
    try:
        inspect.signature(read).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a function that does not say
        return True
    return True
