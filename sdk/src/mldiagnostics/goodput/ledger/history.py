"""The runs in one log, each with its ledger; pure."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.events.clocks import Clocks
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.snapshot import read_head

if TYPE_CHECKING:
    from array import array
    from typing import BinaryIO

    from mldiagnostics.goodput.events.event import Event
    from mldiagnostics.goodput.ledger import RunTimeline

    Run: TypeAlias = "Ledger | RunTimeline"


_FORMAT = "mldiagnostics goodput history"
_VERSION = 2


class History:
    """Events by run id.

    Events without an id belong to a new run if a job starts after a recorded end. `ignored` counts the lines and
    payloads that are not events, by reason; each run counts the events that it ignores itself. `corrected` counts the
    events that were moved because a clock was set, by reason.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()
        self.clocks = Clocks()
        self._without_id = Ledger(splits=True)
        self._ledgers: dict[str, Ledger] = {}

    def add(self, event: Event) -> None:
        """Add an event."""
        self._ledger(event.run).add(event)

    def extend(
        self,
        times: array[int],
        codes: bytes | bytearray | array[int],
        args: array[int],
        *,
        rank: int = 0,
        run: str = "",
    ) -> None:
        """Add many events of one rank and run, as `Ledger.extend` does."""
        self._ledger(run).extend(times, codes, args, rank=rank)

    def begin_again(self) -> bool:
        """Forget all events if a clock was set after some of them; return whether it did.

        If so, read the log again from its beginning, and drop the runs that were returned before.
        """
        if not self.clocks.changed:
            return False
        self.clocks.changed = False
        self.ignored.clear()
        self.corrected.clear()
        self._without_id = Ledger(splits=True)
        self._ledgers = {}
        return True

    @property
    def last_end(self) -> int:
        """The latest recorded end of a job, in the future too; 0 without one."""
        ledgers = (self._without_id, *self._ledgers.values())
        return max((ends[-1] for ledger in ledgers if (ends := ledger.log.job_edges()[1])), default=0)

    @property
    def size(self) -> int:
        """Number of events."""
        return sum(len(ledger.log.t) for ledger in (self._without_id, *self._ledgers.values()))

    def runs(self, now: int) -> list[str]:
        """Return the names of the runs that had started at `now`, oldest first.

        Runs without an id have a number as their name.
        """
        return list(self._runs(now))

    def of(self, now: int, run: str | None = None) -> Run:
        """Return a run, by default the newest; it is valid until an event is added.

        Raises `KeyError`, with the known names, if there is no such run.
        """
        if run is None and not self._ledgers:
            return self._without_id.runs(now)[-1]
        known = self._runs(now)
        if run is None:
            return next(reversed(known.values()))
        if run not in known:
            raise KeyError(f"run {run!r}: not in the log; use one of {', '.join(known)}")
        return known[run]

    def dump(self, file: BinaryIO) -> None:
        """Write the history, for `load`."""
        head = {
            "format": _FORMAT,
            "version": _VERSION,
            "ignored": dict(self.ignored),
            "corrected": dict(self.corrected),
            "clocks": self.clocks.packed(),
            "runs": list(self._ledgers),
        }
        file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n")
        for ledger in (self._without_id, *self._ledgers.values()):
            ledger.dump(file)

    @classmethod
    def load(cls, file: BinaryIO) -> History:
        """Read a history that `dump` wrote. Raises `ValueError` for any other content."""
        head = read_head(file, _FORMAT, _VERSION, max_bytes=1 << 24)
        history = cls()
        try:
            history.ignored.update({str(reason): int(number) for reason, number in head["ignored"].items()})
            history.corrected.update({str(reason): int(number) for reason, number in head["corrected"].items()})
            history.clocks = Clocks.unpacked(head["clocks"])
            names = [str(name) for name in head["runs"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a {_FORMAT} of version {_VERSION}: {error!r}") from error
        history._without_id = Ledger.load(file)
        for name in names:
            history._ledgers[name] = Ledger.load(file)
        return history

    def _ledger(self, run: str) -> Ledger:
        if not run:
            return self._without_id
        if run not in self._ledgers:
            self._ledgers[run] = Ledger(splits=False)
        return self._ledgers[run]

    def _runs(self, now: int) -> dict[str, Run]:
        """Return the runs by name, oldest first."""
        started = {
            name: ledger
            for name, ledger in self._ledgers.items()
            if ledger.first_event is not None and ledger.first_event <= now
        }
        runs: dict[str, Run] = {
            **(started or {} if self._without_id.first_event is not None else started or self._ledgers)
        }
        if self._without_id.first_event is not None or not runs:
            runs.update({str(number): run for number, run in enumerate(self._without_id.runs(now), 1)})
        return dict(sorted(runs.items(), key=lambda item: _start(item[1])))


def _start(run: Run) -> int:
    """Return when a run started."""
    start = run.started if run.started is not None else run.first_event
    return start or 0
