"""Traces of jobs in a short notation, and their events, log entries and sums.

A word is `what@when` in seconds since `T0`: `job@0`, `end@60`, `3@25` (step 3 starts), `3.@28` (step 3 ends),
`0..4@5+10` (steps 0 to 4, one every 10 s), `load@1-4`, `load@1-` (never closed), `load@-4` (never opened),
`*eval@20-25` (custom), `save:3@5-6`, `saved:3@5-6` (logged at its end), `slices:3/4/4@7` (active, total, available),
`cause:preemption@9`, `alive@9`. A word may end in `#1`, the rank that logs it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mldiagnostics.goodput.account import Account
    from mldiagnostics.goodput.events.event import Arg

T0 = 1_735_689_600
BUCKETS = {
    "tpu": BadputType.TPU_INITIALIZATION,
    "prep": BadputType.TRAINING_PREP,
    "startup": BadputType.PROGRAM_STARTUP,
    "sync": BadputType.DATA_LOADING_SYNC,
    "save": BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    "restore": BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
    "wasted": BadputType.WASTED_PROGRESS_FROM_DISRUPTION,
    "recovery": BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION,
    "other": BadputType.OTHER,
    "down": BadputType.ELASTIC_SLICE_DOWN,
    "up": BadputType.ELASTIC_SCALE_UP,
    "reinit": BadputType.ELASTIC_REINITIALIZATION,
}
_PAIRS = {
    "tpu": (EventCode.TPU_INIT_START, "tpu_init"),
    "prep": (EventCode.PREP_START, "training_prep"),
    "load": (EventCode.LOAD_START, "data_loading"),
    "reinit": (EventCode.REINIT_START, "elastic_reinit"),
    "startup": (EventCode.STARTUP_START, "program_startup"),
    "save": (EventCode.SAVE_START, "checkpoint_save"),
    "restore": (EventCode.RESTORE_START, "checkpoint_restore"),
    "down": (EventCode.SLICE_DOWN_START, "elastic_wait"),
    "up": (EventCode.SCALE_UP_START, "elastic_wait"),
    "*": (EventCode.CUSTOM_START, "custom_badput_event"),
}
_POINTS = {
    "job": (EventCode.JOB_START, "job_start_time"),
    "end": (EventCode.JOB_END, "job_end_time"),
    "slices": (EventCode.SLICES, "elastic_slice_counts_timestamp"),
    "cause": (EventCode.CAUSE, "disruption_time"),
    "alive": (EventCode.ALIVE, ""),
}
_WORD = re.compile(r"(\*?[\w.]+?)(?::([^@]+))?@([-+.\d]+)(?:#(\d+))?")


class Entry(NamedTuple):
    """One line of a log, as the ledger and as ml-goodput-measurement would have it."""

    event: Event
    payload: dict[str, Any]


@dataclass
class Query:
    """A query of a trace and the expected sums in seconds."""

    line: str
    now: float
    window: tuple[float | None, float | None] = (None, None)
    without: list[tuple[float, float]] = field(default_factory=list)
    run: int = -1
    """Index of the run in the log; by default the newest."""
    answer: dict[str, float] = field(default_factory=dict)


class Trace(NamedTuple):
    """A worked trace: its title, its log entries, and queries with the expected results."""

    name: str
    entries: list[Entry]
    queries: list[Query]


def micros(seconds: float) -> int:
    """Return a time of a trace in microseconds of POSIX time."""
    return T0 * 1_000_000 + round(seconds * 1e6)


def entries(text: str) -> list[Entry]:
    """Return the log entries of all words of a trace, in the order of the words (an open before its close)."""
    return [entry for word in text.split() for entry in _entries(word)]


def events(text: str) -> list[Event]:
    """Return the events of a trace."""
    return [entry.event for entry in entries(text)]


def summary(account: Account) -> dict[str, float]:
    """Return the sums of an account in the notation of traces, without zeros."""
    names = {bucket: name for name, bucket in BUCKETS.items()}
    parts = account.unproductive.items()
    sums = {("*" + spent.custom if spent.custom else names[spent.bucket]): time for spent, time in parts}
    sums |= {"ok": account.productive, "async": account.overlay, "of": account.elapsed, "out": account.excluded}
    sums_by_name = {name: time / 1e6 for name, time in sums.items() if time}
    if account.disruptions:
        sums_by_name["lost"] = account.disruptions
    return sums_by_name if account.max_step is None else sums_by_name | {"max": account.max_step}


def traces(path: Path) -> list[Trace]:
    """Return the worked traces of a file: `== name`, lines of words, and lines `? 60: ok=20 other=40 of=60`."""
    parsed = []
    for block in path.read_text().split("\n== ")[1:]:
        name, *lines = block.splitlines()
        words = " ".join(line for line in lines if not line.startswith(("?", "#")))
        queries = [_query(line.strip("? ")) for line in lines if line.startswith("?")]
        parsed.append(Trace(name.strip(), entries(words), queries))
    return parsed


def _query(line: str) -> Query:
    head, _, answer = line.partition(":")
    now, *options = head.split()
    query = Query(line, float(now))
    for option in options:
        kind, _, stretch = option.partition("=")
        start, _, end = stretch.partition("..")
        if kind == "run":
            query.run = int(stretch) - 1
        elif kind == "window":
            query.window = float(start) if start else None, float(end) if end else None
        else:
            query.without.append((float(start), float(end)))
    query.answer = {name: float(value) for name, _, value in (pair.partition("=") for pair in answer.split())}
    return query


def _entries(word: str) -> Iterator[Entry]:
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f"{word!r} is not a word of a trace")
    what, argument, when, rank = match[1], match[2] or "", match[3], int(match[4] or 0)
    if what in ("saved", "restored"):
        start, _, end = when.partition("-")
        yield _checkpoint(what, int(argument or -1), float(start), float(end), rank)
    elif what[0] == "*" or what in _PAIRS:
        yield from _pair(what, argument, when, rank)
    elif what[0].isdigit():
        yield from _steps(what, when, rank)
    else:
        yield _point(what, argument, float(when), rank)


def _steps(what: str, when: str, rank: int) -> Iterator[Entry]:
    first, _, last = what.partition("..")
    start, _, every = when.partition("+")
    ends = what.endswith(".") and not last
    first = first.rstrip(".")
    for count, step in enumerate(range(int(first), int(last or first) + 1)):
        seconds = float(start) + count * float(every or 0)
        key = "step_end_time" if ends else "step_start_time"
        payload = {"step_count": step, key: T0 + seconds}
        yield _entry(seconds, EventCode.STEP_END if ends else EventCode.STEP_START, step, rank, payload)


def _pair(what: str, argument: str, when: str, rank: int) -> Iterator[Entry]:
    code, name = _PAIRS["*" if what[0] == "*" else what]
    more: dict[str, Any] = {}
    arg: Arg = 0
    if what[0] == "*":
        more, arg = {"custom_badput_event_type": what[1:]}, what[1:].upper()
    elif what in ("up", "down"):
        more = {"elastic_wait_event_type": "elastic_scale_up" if what == "up" else "elastic_slice_down"}
    elif what in ("save", "restore"):
        more, arg = ({"checkpoint_step": int(argument)}, int(argument)) if argument else ({}, -1)
    for seconds, edge, offset in zip(when.split("-"), ("start", "end"), (0, 1), strict=False):
        if seconds:
            payload = {**more, f"{name}_{edge}_time": T0 + float(seconds)}
            yield _entry(float(seconds), EventCode(code + offset), arg, rank, payload)


def _point(what: str, argument: str, seconds: float, rank: int) -> Entry:
    code, key = _POINTS[what]
    payload: dict[str, Any] = {key: T0 + seconds}
    arg: Arg = 0
    if code is EventCode.SLICES:
        arg = SliceCounts(*map(int, argument.split("/")))
        payload |= {f"{name}_slices": count for name, count in arg._asdict().items()}
    elif code is EventCode.CAUSE:
        arg, payload["disruption_cause"] = argument, argument
    return _entry(seconds, code, arg, rank, payload)


def _checkpoint(what: str, step: int, start: float, end: float, rank: int) -> Entry:
    """Return a checkpoint as Orbax logs it, with its null fields."""
    times = {"saved": "checkpoint_manager_blocking", "restored": "checkpoint_manager"}[what]
    payload = {
        "step": step,
        "event_type": {"saved": "save", "restored": "restore"}[what],
        "directory": "gs://bucket/checkpoints",
        "wait_for_prev_start_time": None,
        "preemption_received_at": None,
        "time_between_consecutive_saves_sec": None,
        f"{times}_start_time": T0 + start,
        f"{times}_duration_secs": end - start,
    }
    code = EventCode.SAVED if what == "saved" else EventCode.RESTORED
    return _entry(start, code, CheckpointEvent(micros(end), step, "persistent"), rank, payload)


def _entry(seconds: float, code: EventCode, arg: Arg, rank: int, payload: dict[str, Any]) -> Entry:
    logged = payload if rank == 0 else {**payload, "rank": rank}
    return Entry(Event(micros(seconds), code, arg, rank), {"job_name": "job", **logged})
