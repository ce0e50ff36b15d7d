"""What the lines of one file say, in columns where the SDK wrote them, one by one otherwise; pure.

Lines as `outlet` has them written are taken apart by one regular expression over a whole block, which is ten times as
fast as JSON; it need not know every line, since what it leaves over is read as JSON. Its times have up to six decimals:
with the zeros that `repr` leaves out and without the point they are whole microseconds, until 2096 the same that floats
give.
"""

from __future__ import annotations

import json
import re
from array import array
from contextlib import suppress
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.clocks import CLOCK_STEP
from mldiagnostics.goodput.events import Event, EventCode
from mldiagnostics.goodput.listener import ShiftingListener
from mldiagnostics.goodput.payload import PLAIN_KEYS, STEP_KEYS, micros, parse
from mldiagnostics.pipeline.drops import ADVICE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mldiagnostics.goodput.clocks import Clocks
    from mldiagnostics.goodput.listener import EventListener

__all__ = ["LineParser", "LoggedPayload", "take"]

_CODES = {key.encode(): int(code) for key, code in (PLAIN_KEYS | STEP_KEYS).items()}
_STEPS = tuple(key.encode() for key in STEP_KEYS)
_TIME_BYTES = 17
_HEAD = "segment"
_HEAD_MARK = b'"name":"segment"'
_CLOCK_MARK = f'"{CLOCK_STEP}":'.encode()
_EVENT_ID = re.compile(rb'"event_id":"([^"\\]*)"')
_NAME, _SINK = "goodput", "jsonl"
_UNREADABLE = "unreadable line"
_CAUSES = {
    "Preempted": "preemption",
    "Terminated": "signal",
    "Terminating": "signal",
    "UncaughtException": "exception",
    "UncaughtExceptionInThread": "exception",
    "ExitCode": "exit code",
}
"""Reasons of phases that say why an attempt ended: a process may be killed while it deals with a signal."""


class LoggedPayload(NamedTuple):
    """A payload with what stands around it; `logged` is None in a file of payloads alone."""

    payload: Mapping[str, Any]
    logged: float | None
    rank: int
    run: str


class _SequenceGap(NamedTuple):
    """Events that were recorded and never came into the log."""

    reason: str
    number: int


class LineParser:
    """Reads the lines of one file, in order. With `job_name`, what tells of other jobs is passed over.

    `rank` and `run` are those that the first line of our files says, 0 and empty in any other file. The names of jobs
    that are seen are put into `jobs`.
    """

    def __init__(
        self, *, job_name: str | None = None, rank: int = 0, run: str = "", jobs: set[str] | None = None
    ) -> None:
        self.rank, self.run = rank, run
        self._shift = 0
        """By how much the last event was moved."""
        self._jobs = set() if jobs is None else jobs
        self._job_name = job_name
        name = rb'[^"]*' if job_name is None else re.escape(json.dumps(job_name)[1:-1].encode())
        # A class of one character, negated, is what `re` passes over fastest. Keys of checkpoints may need another one.
        self._known = re.compile(
            rb'\{"v":1,"kind":"event",[^{]*\{"job_name":"' + name + rb'",(?:"step_count":([0-9]{1,9}),|)"((?!c)[^"]*)":'
            rb'([1-3][0-9]{9}\.[0-9]{1,6}),"event_id":"[^"]*"\}\}\n'
        )

    def feed(self, block: bytes, history: EventListener) -> None:
        """Take whole lines; each that begins a file of ours says whose the next are."""
        if _CLOCK_MARK in block:
            self._learn(block, history.clocks)
        if not history.clocks:
            self._take(block, history)
            return
        for shift, lines in groupby(
            block.splitlines(keepends=True), key=lambda line: self._moved(line, history.clocks)
        ):
            self._take(b"".join(lines), ShiftingListener(history, shift) if shift else history)

    def _learn(self, block: bytes, clocks: Clocks) -> None:
        """Learn of clocks that were set."""
        for line in block.split(b"\n"):
            if _CLOCK_MARK in line:
                with suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    payload = found.get("payload", found) if isinstance(found, dict) else None
                    if isinstance(payload, dict):
                        clocks.learn(payload)

    def _moved(self, line: bytes, clocks: Clocks) -> int:
        """Return by how much what a line tells is to be moved; a line without an id stands beside one that has one."""
        found = _EVENT_ID.search(line)
        if found is not None:
            self._shift = clocks.shift(found[1].decode(errors="replace"))
        elif _HEAD_MARK in line:
            self._shift = 0
        return self._shift

    def _take(self, block: bytes, history: EventListener) -> None:
        alone = self._known.fullmatch(block)  # as where a running job is watched
        if alone and _are_columns([None, *alone.groups()]):
            step, key, time = alone.groups()
            self._take_one(step, key, time, history)
            return
        parts = self._known.split(block)  # an odd piece, then again and again a step, a key, a time and an odd piece
        if not _are_columns(parts):
            parts = [block]
        heads = [at for at in range(4, len(parts), 4) if parts[at] and _HEAD_MARK in parts[at]]
        for start, end in pairwise([0, *heads, len(parts)]):
            if parts[start]:
                self._take_lines(parts[start], history)
            self._take_columns(parts[start:end], history)
            for odd in filter(None, parts[start + 4 : end : 4]):
                self._take_lines(odd, history)

    def payloads(self, block: bytes) -> Iterator[LoggedPayload]:
        """Yield the payloads of whole lines, as they were logged."""
        for line in block.split(b"\n"):
            found = self._told(line)
            if isinstance(found, LoggedPayload):
                yield found

    def _take_one(self, step: bytes | None, key: bytes, time: bytes, history: EventListener) -> None:
        moment = int(time.ljust(_TIME_BYTES, b"0").replace(b".", b""))
        history.add(Event(moment, EventCode(_CODES[key]), int(step or 0), self.rank, self.run))

    def _take_columns(self, parts: list[Any], history: EventListener) -> None:
        """Take what stands between the odd ones of the parts."""
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
        found = self._told(line)
        if isinstance(found, Event):
            history.add(found)
        elif isinstance(found, LoggedPayload):
            take(found, history)
        elif isinstance(found, _SequenceGap):
            history.ignored[found.reason] += found.number
        elif found:
            history.ignored[found] += 1

    def _told(self, line: bytes) -> LoggedPayload | Event | _SequenceGap | str:
        """Return what a line tells; a text is the reason why that is nothing, empty if it needs none."""
        if not line.strip() or line.startswith((b'{"v":1,"kind":"metric"', b'{"v":1,"kind":"config"')):
            return ""
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                return _UNREADABLE
            return self._record(found) if "kind" in found and "v" in found else self._of_job(found, None)
        except (ValueError, RecursionError):
            return _UNREADABLE

    def _record(self, record: dict[str, Any]) -> LoggedPayload | Event | _SequenceGap | str:
        kind, t, payload = record["kind"], micros(record.get("t")), record.get("payload")
        if kind == "drop":
            return _gap(record)
        if kind == "event" and record.get("name") == _HEAD:
            return self._begin(record)
        if kind == "heartbeat" and t is not None:
            return Event(t, EventCode.ALIVE, 0, self.rank, self.run)
        if not isinstance(payload, dict):
            return ""
        if kind == "phase" and t is not None:
            cause = _CAUSES.get(str(payload.get("reason")))
            return Event(t, EventCode.CAUSE, cause, self.rank, self.run) if cause else ""
        return self._of_job(payload, record.get("t")) if kind == "event" else ""

    def _begin(self, head: dict[str, Any]) -> str:
        labels, rank = head.get("labels"), head.get("rank")
        if isinstance(labels, dict) and isinstance(labels.get("run"), str) and type(rank) is int and rank >= 0:
            self.rank, self.run = rank, labels["run"]
            self._see(labels.get("name"))
        return ""

    def _of_job(self, payload: dict[str, Any], logged: object) -> LoggedPayload | str:
        if self._job_name is not None and payload.get("job_name", self._job_name) != self._job_name:
            return ""
        self._see(payload.get("job_name"))
        moment = logged if isinstance(logged, float) else None
        return LoggedPayload(payload, moment, self.rank, self.run)

    def _see(self, job_name: object) -> None:
        if isinstance(job_name, str) and self._job_name in (None, job_name):
            self._jobs.add(job_name)


def _gap(record: dict[str, Any]) -> _SequenceGap | str:
    """Return what a record of dropped ones says of events; a run's metrics and other sinks have gaps of their own."""
    labels, payload, number = record.get("labels") or {}, record.get("payload") or {}, record.get("value")
    if not (isinstance(labels, dict) and isinstance(payload, dict) and isinstance(number, float) and 0 < number < 1e15):
        return ""
    reason = str(record.get("name"))
    ours = str(labels.get("sink", _SINK)).startswith(_SINK) and str(payload.get("detail", _NAME)).startswith(_NAME)
    return _SequenceGap(f"never logged: {reason}", int(number)) if ours and reason in ADVICE else ""


def _are_columns(parts: list[Any]) -> bool:
    """Tell whether all keys between the odd ones of the parts are known, and have a step where they need one."""
    steps, keys = parts[1::4], parts[2::4]
    return _CODES.keys() >= set(keys) and sum(map(keys.count, _STEPS)) == len(keys) - steps.count(None)


def take(told: LoggedPayload, history: EventListener) -> None:
    """Feed what a payload tells; one that the program logged for other purposes is none of ours."""
    found = parse(told.payload, rank=told.rank, run=told.run, logged=told.logged)
    if not isinstance(found, str):
        for event in found:
            history.add(event)
    elif found != "no known event":
        history.ignored[found] += 1
