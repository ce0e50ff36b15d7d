"""Lines with many packed events each; pure.

The journal of the control plane has them. A line is a record of kind `event` whose payload has the items of
`packing.pack` under `packed`. Its `event_id` is that of the first event; the following ones count on. A line has the
size of the report that it came with, while a line for each event would have up to two thousand times as much.
"""

from __future__ import annotations

import json
from array import array
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.events.clocks import CLOCK_STEP
from mldiagnostics.goodput.events.conversion import PLAIN_KEYS, STEP_KEYS, parse, payload_of
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.events.listener import ShiftingListener
from mldiagnostics.goodput.events.packing import END_OF_TIME_US, ClockStep, Unpacker
from mldiagnostics.pipeline.records import GOODPUT, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mldiagnostics.goodput.events.event import Event
    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.goodput.events.packing import Entry


PACKED_MARK = b'"packed":['
"""Part of every such line, and of no other."""

_PIECE = 4096
"""Events that are unpacked at a time."""

_COLUMNS = frozenset({*PLAIN_KEYS.values(), *STEP_KEYS.values()})
"""Events whose argument is a number: many are added at once."""


def packed_line(items: bytes, *, first: int, run: str, incarnation: str, rank: int, attempt: int) -> bytes:
    """Return the line of some packed events.

    Args:
        items: JSON items of one packed list, joined by commas.
        first: Number of the first event in its process.
        run: Run id.
        incarnation: The process.
        rank: Rank of the process.
        attempt: Attempt of the process.
    """
    head = (
        f'{{"v":{SCHEMA_VERSION},"kind":"event","t":0.0,"name":"{GOODPUT}","rank":{rank},"attempt":{attempt},'
        f'"payload":{{"job_name":{json.dumps(run)},"event_id":"{incarnation}-{first}",'
    )
    return b"%b%b%b]}}\n" % (head.encode(), PACKED_MARK, items)


class PackedLine(NamedTuple):
    """The content of a line."""

    run: str
    process: str
    first: int
    """Number of its first event in the process."""
    rank: int
    items: list[Any]

    def add_to(self, listener: EventListener) -> None:
        """Add the events; unreadable ones are counted in `ignored`."""
        for piece, number in self._pieces(listener):
            if not listener.clocks:
                self._add(piece, listener)
                continue
            numbered = enumerate(piece, number)
            for shift, entries in groupby(numbered, key=lambda each: listener.clocks.shift(self._id(each[0]))):
                target = ShiftingListener(listener, shift) if shift else listener
                self._add([entry for _, entry in entries], target)

    def learn(self, listener: EventListener) -> None:
        """Read the clock steps."""
        for number, item in enumerate(self.items, self.first):
            if isinstance(item, dict):
                listener.clocks.learn({CLOCK_STEP: item.get("clock"), "event_id": self._id(number)})

    def payloads(self) -> Iterator[dict[str, Any]]:
        """Yield the payload of each event, as other logs have them."""
        unpacker = Unpacker()
        for at in range(0, len(self.items), _PIECE):
            for number, entry in enumerate(unpacker.unpack(self.items[at : at + _PIECE]), self.first + at):
                if isinstance(entry, ClockStep):
                    yield {"job_name": self.run, CLOCK_STEP: entry.by, "event_id": self._id(number)}
                elif entry.code is not EventCode.ALIVE:
                    yield self._payload(entry) | {"event_id": self._id(number)}

    def _pieces(self, listener: EventListener) -> Iterator[tuple[list[Entry], int]]:
        unpacker = Unpacker()
        for at in range(0, len(self.items), _PIECE):
            try:
                piece = unpacker.unpack(self.items[at : at + _PIECE])
            except ValueError:
                listener.ignored["unreadable line"] += 1
                return
            yield piece, self.first + at

    def _add(self, entries: Iterable[Entry], listener: EventListener) -> None:
        times, codes, args = array("q"), bytearray(), array("i")
        for entry in entries:
            if isinstance(entry, ClockStep):
                continue
            t, code, arg, rank, run = entry
            is_ours = rank == self.rank and run in {"", self.run} and 0 <= t < END_OF_TIME_US
            if is_ours and code in _COLUMNS and isinstance(arg, int):
                times.append(t)
                codes.append(code)
                args.append(arg)
            elif is_ours and code is EventCode.ALIVE:
                listener.add(entry._replace(run=self.run))
            else:
                self._add_parsed(entry, listener)
        if times:
            listener.extend(times, bytes(codes), args, rank=self.rank, run=self.run)

    def _add_parsed(self, event: Event, listener: EventListener) -> None:
        """Add an event of any other kind by the rules of all logs."""
        if event.code is EventCode.ALIVE:
            return
        events = parse(self._payload(event), rank=self.rank, run=self.run)
        if isinstance(events, str):
            listener.ignored[events] += 1
            return
        for each in events:
            listener.add(each)

    def _payload(self, event: Event) -> dict[str, Any]:
        payload = payload_of(event, self.run)
        if event.rank != self.rank:
            payload["rank"] = event.rank
        if event.run and event.run != self.run:
            payload["run_id"] = event.run
        return payload

    def _id(self, number: int) -> str:
        return f"{self.process}-{number}"


def read_packed(line: bytes) -> PackedLine | None:
    """Return the content of a line; None if it is not such a line."""
    try:
        record = json.loads(line)
        payload = record["payload"]
        process, _, first = payload["event_id"].rpartition("-")
        run, rank, items = payload["job_name"], record["rank"], payload["packed"]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    known = isinstance(run, str) and type(rank) is int and rank >= 0 and isinstance(items, list)
    return PackedLine(run, process, int(first), rank, items) if known and first.isdecimal() else None
