"""Parser of the lines of one file; pure.

One regular expression splits a whole block of lines in the format of `log_writer`, ten times as fast as JSON; lines
that do not match are parsed as JSON. Times have up to six decimals: padded with zeros and without the point, they are
whole microseconds, which until the year 2096 are the same as those of floats.
"""

from __future__ import annotations

import json
import re
from array import array
from contextlib import suppress
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.events.clocks import CLOCK_STEP
from mldiagnostics.goodput.events.conversion import PLAIN_KEYS, STEP_KEYS, cause_of_end, micros, parse
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.events.listener import ShiftingListener
from mldiagnostics.goodput.log.packed import PACKED_MARK, PackedLine, read_packed
from mldiagnostics.pipeline.drops import ADVICE
from mldiagnostics.pipeline.records import SEGMENT_HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mldiagnostics.goodput.events.clocks import Clocks
    from mldiagnostics.goodput.events.listener import EventListener


_CODES = {key.encode(): int(code) for key, code in (PLAIN_KEYS | STEP_KEYS).items()}
_STEPS = tuple(key.encode() for key in STEP_KEYS)
_TIME_BYTES = 17
_HEAD_MARK = b'"name":"segment"'
_CLOCK_MARK = f'"{CLOCK_STEP}":'.encode()
_EVENT_ID = re.compile(rb'"event_id":"([^"\\]*)"')
_NAME, _SINK = "goodput", "jsonl"
_UNREADABLE = "unreadable line"


class LoggedPayload(NamedTuple):
    """A payload with its time, rank and run; bare payloads have no time."""

    payload: Mapping[str, Any]
    logged: float | None
    rank: int
    run: str


class _SequenceGap(NamedTuple):
    """A number of recorded events that are missing in the log."""

    reason: str
    number: int


class LineParser:
    """Parses the lines of one file, in order.

    With `job_name`, events of other jobs are skipped. `rank` and `run` are from the first line of the SDK's files, 0
    and empty in other files. The names of jobs in the file are added to `jobs`.
    """

    def __init__(
        self, *, job_name: str | None = None, rank: int = 0, run: str = "", jobs: set[str] | None = None
    ) -> None:
        self.rank, self.run = rank, run
        self._shift = 0
        """The microseconds by which the last event was moved."""
        self._jobs = set() if jobs is None else jobs
        self._job_name = job_name
        name = rb'[^"]*' if job_name is None else re.escape(json.dumps(job_name)[1:-1].encode())
        # `re` skips a negated class of one character fastest. Keys of checkpoints can need a second key.
        self._known = re.compile(
            rb'\{"v":1,"kind":"event",[^{]*\{"job_name":"' + name + rb'",(?:"step_count":([0-9]{1,9}),|)"((?!c)[^"]*)":'
            rb'([1-3][0-9]{9}\.[0-9]{1,6}),"event_id":"[^"]*"\}\}\n'
        )

    def feed(self, block: bytes, history: EventListener) -> None:
        """Parse whole lines; the head line of a file sets rank and run of the next lines."""
        if PACKED_MARK in block:
            block = self._feed_packed(block, history)
        if _CLOCK_MARK in block:
            self._learn(block, history.clocks)
        if not history.clocks:
            self._take(block, history)
            return
        for shift, lines in groupby(
            block.splitlines(keepends=True), key=lambda line: self._moved(line, history.clocks)
        ):
            self._take(b"".join(lines), ShiftingListener(history, shift) if shift else history)

    def _feed_packed(self, block: bytes, history: EventListener) -> bytes:
        """Add the events of lines with many events; return the other lines."""
        others = list[bytes]()
        packed = list[PackedLine]()
        for line in block.splitlines(keepends=True):
            read = read_packed(line) if PACKED_MARK in line else None
            if read is None:
                others.append(line)
            elif self._is_of_job(read.run):
                packed.append(read)
        for read in packed:
            read.learn(history)
        for read in packed:
            read.add_to(history)
        return b"".join(others)

    def _learn(self, block: bytes, clocks: Clocks) -> None:
        """Read the clock steps of a block."""
        for line in block.split(b"\n"):
            if _CLOCK_MARK in line:
                with suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    payload = record.get("payload", record) if isinstance(record, dict) else None
                    if isinstance(payload, dict):
                        clocks.learn(payload)

    def _moved(self, line: bytes, clocks: Clocks) -> int:
        """Return the shift of a line's event; without an id it is that of the last line."""
        match = _EVENT_ID.search(line)
        if match is not None:
            self._shift = clocks.shift(match[1].decode(errors="replace"))
        elif _HEAD_MARK in line:
            self._shift = 0
        return self._shift

    def _take(self, block: bytes, history: EventListener) -> None:
        alone = self._known.fullmatch(block)  # as in a log that is followed
        if alone and _are_columns([None, *alone.groups()]):
            step, key, time = alone.groups()
            self._take_one(step, key, time, history)
            return
        parts = self._known.split(block)  # other text, then step, key, time and other text, repeated
        if not _are_columns(parts):
            parts = [block]
        heads = [at for at in range(4, len(parts), 4) if parts[at] and _HEAD_MARK in parts[at]]
        for start, end in pairwise([0, *heads, len(parts)]):
            if parts[start]:
                self._take_lines(parts[start], history)
            self._take_columns(parts[start:end], history)
            for rest in filter(None, parts[start + 4 : end : 4]):
                self._take_lines(rest, history)

    def payloads(self, block: bytes) -> Iterator[LoggedPayload]:
        """Yield the payloads of whole lines."""
        for line in block.split(b"\n"):
            packed = read_packed(line) if PACKED_MARK in line else None
            if packed is not None:
                yield from self._packed_payloads(packed)
                continue
            parsed = self._parse(line)
            if isinstance(parsed, LoggedPayload):
                yield parsed

    def _packed_payloads(self, line: PackedLine) -> Iterator[LoggedPayload]:
        if self._is_of_job(line.run):
            with suppress(ValueError):
                for payload in line.payloads():
                    yield LoggedPayload(payload, None, line.rank, line.run)

    def _take_one(self, step: bytes | None, key: bytes, time: bytes, history: EventListener) -> None:
        moment = int(time.ljust(_TIME_BYTES, b"0").replace(b".", b""))
        history.add(Event(moment, EventCode(_CODES[key]), int(step or 0), self.rank, self.run))

    def _take_columns(self, parts: list[Any], history: EventListener) -> None:
        """Add the events of matched lines in columns."""
        steps, keys, times = parts[1::4], parts[2::4], parts[3::4]
        if keys:
            codes = bytes([_CODES[key] for key in keys])
            digits = b",".join([time.ljust(_TIME_BYTES, b"0") for time in times]).replace(b".", b"").decode()
            moments = array("q", json.loads(f"[{digits}]"))
            args = array("i", [0 if step is None else int(step) for step in steps])
            history.extend(moments, codes, args, rank=self.rank, run=self.run)

    def _take_lines(self, lines: bytes, history: EventListener) -> None:
        for line in lines.split(b"\n"):
            self._take_line(line, history)

    def _take_line(self, line: bytes, history: EventListener) -> None:
        parsed = self._parse(line)
        if isinstance(parsed, Event):
            history.add(parsed)
        elif isinstance(parsed, LoggedPayload):
            take(parsed, history)
        elif isinstance(parsed, _SequenceGap):
            history.ignored[parsed.reason] += parsed.number
        elif parsed:
            history.ignored[parsed] += 1

    def _parse(self, line: bytes) -> LoggedPayload | Event | _SequenceGap | str:
        """Return the content of a line, or the reason, maybe empty, to ignore it."""
        if not line.strip() or line.startswith((b'{"v":1,"kind":"metric"', b'{"v":1,"kind":"config"')):
            return ""
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                return _UNREADABLE
            return self._record(record) if "kind" in record and "v" in record else self._of_job(record, None)
        except (ValueError, RecursionError):
            return _UNREADABLE

    def _record(self, record: dict[str, Any]) -> LoggedPayload | Event | _SequenceGap | str:
        kind, t, payload = record["kind"], micros(record.get("t")), record.get("payload")
        if kind == "drop":
            return _gap(record)
        if kind == "event" and record.get("name") == SEGMENT_HEAD:
            return self._read_head(record)
        if kind == "heartbeat" and t is not None:
            return Event(t, EventCode.ALIVE, 0, self.rank, self.run)
        if not isinstance(payload, dict):
            return ""
        if kind == "phase" and t is not None:
            cause = cause_of_end(payload.get("reason"))
            return Event(t, EventCode.CAUSE, cause, self.rank, self.run) if cause else ""
        return self._of_job(payload, record.get("t")) if kind == "event" else ""

    def _read_head(self, head: dict[str, Any]) -> str:
        labels, rank = head.get("labels"), head.get("rank")
        if isinstance(labels, dict) and isinstance(labels.get("run"), str) and type(rank) is int and rank >= 0:
            self.rank, self.run = rank, labels["run"]
            self._add_job(labels.get("name"))
        return ""

    def _of_job(self, payload: dict[str, Any], logged: object) -> LoggedPayload | str:
        if not self._is_of_job(payload.get("job_name", self._job_name)):
            return ""
        moment = logged if isinstance(logged, float) else None
        return LoggedPayload(payload, moment, self.rank, self.run)

    def _is_of_job(self, job_name: object) -> bool:
        """Return whether the events of a job are read; note its name."""
        if self._job_name is not None and job_name != self._job_name:
            return False
        self._add_job(job_name)
        return True

    def _add_job(self, job_name: object) -> None:
        if isinstance(job_name, str) and self._job_name in (None, job_name):
            self._jobs.add(job_name)


def _gap(record: dict[str, Any]) -> _SequenceGap | str:
    """Return the dropped events of a drop record, if they belong to this log."""
    labels, payload, number = record.get("labels") or {}, record.get("payload") or {}, record.get("value")
    if not (isinstance(labels, dict) and isinstance(payload, dict) and isinstance(number, float) and 0 < number < 1e15):
        return ""
    reason = str(record.get("name"))
    ours = str(labels.get("sink", _SINK)).startswith(_SINK) and str(payload.get("detail", _NAME)).startswith(_NAME)
    return _SequenceGap(f"never logged: {reason}", int(number)) if ours and reason in ADVICE else ""


def _are_columns(parts: list[Any]) -> bool:
    """Return whether all matched keys are known, and those of steps have a step."""
    steps, keys = parts[1::4], parts[2::4]
    return _CODES.keys() >= set(keys) and sum(map(keys.count, _STEPS)) == len(keys) - steps.count(None)


def take(entry: LoggedPayload, history: EventListener) -> None:
    """Add the events of a payload; ignore payloads that are not about goodput."""
    events = parse(entry.payload, rank=entry.rank, run=entry.run, logged=entry.logged)
    if not isinstance(events, str):
        for event in events:
            history.add(event)
    elif events != "no known event":
        history.ignored[events] += 1
