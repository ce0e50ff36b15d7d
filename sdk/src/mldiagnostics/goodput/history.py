"""The runs that were told under one name, each with its ledger; pure."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.clocks import Clocks
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.snapshot import read_head

if TYPE_CHECKING:
    from array import array
    from typing import BinaryIO

    from mldiagnostics.goodput.events import Event
    from mldiagnostics.goodput.ledger import RunTimeline

    Run: TypeAlias = "Ledger | RunTimeline"

__all__ = ["History"]

_FORMAT = "mldiagnostics goodput history"
_VERSION = 2


class History:
    """Events by the id of their run. Events without one are divided where a job starts after a recorded end.

    `ignored` counts what never became an event; what a run ignores is in its own `ignored`. `corrected` counts events
    that are by another clock than the log says, by reason.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()
        self.clocks = Clocks()
        self._old = Ledger(splits=True)
        self._ledgers: dict[str, Ledger] = {}

    def add(self, event: Event) -> None:
        """Take an event in."""
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
        """Take many events of one rank and run in, as `Ledger.extend` does."""
        self._ledger(run).extend(times, codes, args, rank=rank)

    def begin_again(self) -> bool:
        """Forget all events if a clock was set after some of them were recorded; tell whether that is so.

        If so, feed the history again from the beginning of the log, and drop the runs that it returned before.
        """
        if not self.clocks.changed:
            return False
        self.clocks.changed = False
        self.ignored.clear()
        self.corrected.clear()
        self._old = Ledger(splits=True)
        self._ledgers = {}
        return True

    @property
    def last_end(self) -> int:
        """When a job of any run is told to have ended last, whatever time it is now; 0 if that is told of none."""
        ledgers = (self._old, *self._ledgers.values())
        return max((ends[-1] for ledger in ledgers if (ends := ledger.log.job_edges()[1])), default=0)

    def runs(self, now: int) -> list[str]:
        """Return the names of the runs that had begun at `now`, oldest first; those without an id are numbered."""
        return list(self._runs(now))

    def of(self, now: int, run: str | None = None) -> Run:
        """Return what to ask about a run, good until the next event comes; the newest one if none is named.

        Raises `KeyError` if there is no run of that name, saying which there are.
        """
        if run is None and not self._ledgers:
            return self._old.runs(now)[-1]
        known = self._runs(now)
        if run is None:
            return next(reversed(known.values()))
        if run not in known:
            raise KeyError(f"no run {run!r}: there are {', '.join(known)}")
        return known[run]

    def dump(self, file: BinaryIO) -> None:
        """Write all that is known, for `load`."""
        head = {
            "format": _FORMAT,
            "version": _VERSION,
            "ignored": dict(self.ignored),
            "corrected": dict(self.corrected),
            "clocks": self.clocks.packed(),
            "runs": list(self._ledgers),
        }
        file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n")
        for ledger in (self._old, *self._ledgers.values()):
            ledger.dump(file)

    @classmethod
    def load(cls, file: BinaryIO) -> History:
        """Read what `dump` has written. Raises `ValueError` saying what is wrong with anything else."""
        head = read_head(file, _FORMAT, _VERSION, max_bytes=1 << 24)
        history = cls()
        try:
            history.ignored.update({str(reason): int(number) for reason, number in head["ignored"].items()})
            history.corrected.update({str(reason): int(number) for reason, number in head["corrected"].items()})
            history.clocks = Clocks.unpacked(head["clocks"])
            names = [str(name) for name in head["runs"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no {_FORMAT} of version {_VERSION}: {error!r}") from error
        history._old = Ledger.load(file)
        for name in names:
            history._ledgers[name] = Ledger.load(file)
        return history

    def _ledger(self, run: str) -> Ledger:
        if not run:
            return self._old
        if run not in self._ledgers:
            self._ledgers[run] = Ledger(splits=False)
        return self._ledgers[run]

    def _runs(self, now: int) -> dict[str, Run]:
        """Return the runs by name, oldest first."""
        begun = {
            name: ledger
            for name, ledger in self._ledgers.items()
            if ledger.first_event is not None and ledger.first_event <= now
        }
        found: dict[str, Run] = {**(begun or {} if self._old.first_event is not None else begun or self._ledgers)}
        if self._old.first_event is not None or not found:
            found.update({str(number): life for number, life in enumerate(self._old.runs(now), 1)})
        return dict(sorted(found.items(), key=lambda item: _begin(item[1])))


def _begin(run: Run) -> int:
    """Return when a run began."""
    begin = run.started if run.started is not None else run.first_event
    return begin or 0
