"""A slow reader of goodput logs that follows the definitions: trusted events, runs, attempts and spans."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType as B
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECOND = 1_000_000
Key = tuple[EventCode, object, int]

SPANS = {
    EventCode.TPU_INIT_START: B.TPU_INITIALIZATION,
    EventCode.PREP_START: B.TRAINING_PREP,
    EventCode.LOAD_START: B.DATA_LOADING_SYNC,
    EventCode.REINIT_START: B.ELASTIC_REINITIALIZATION,
    EventCode.STARTUP_START: B.PROGRAM_STARTUP,
    EventCode.SAVE_START: B.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    EventCode.RESTORE_START: B.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
    EventCode.SLICE_DOWN_START: B.ELASTIC_SLICE_DOWN,
    EventCode.SCALE_UP_START: B.ELASTIC_SCALE_UP,
    EventCode.CUSTOM_START: B.CUSTOM_BADPUT_EVENTS,
}
WHOLE = {
    EventCode.SAVED: B.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    EventCode.RESTORED: B.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
}
CHECKPOINTS = {EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END, *WHOLE}
WAITS = {EventCode.SLICE_DOWN_START, EventCode.SCALE_UP_START}
SINGLE = {EventCode.JOB_START, EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.REINIT_START, *WAITS}
PHASES = {EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START, EventCode.REINIT_START, *WAITS}
CONTAINS = {
    EventCode.PREP_START: {EventCode.LOAD_START},
    EventCode.REINIT_START: {EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START},
}
RESTARTS = {
    EventCode.TPU_INIT_START,
    EventCode.PREP_START,
    EventCode.REINIT_START,
    EventCode.RESTORE_START,
    EventCode.RESTORED,
}


class Span(NamedTuple):
    """Time of an activity other than a step."""

    start: int
    end: int
    spent: Bucket


@dataclass
class Reading:
    """One attempt in the log: the events that open it, the positions of its steps, and its start."""

    openings: list[Event] = field(default_factory=list)
    """Its job starts, and the re-initialisations before the first of these."""
    steps: list[tuple[int, Event]] = field(default_factory=list)
    restart: int = 0


def opens(code: EventCode) -> EventCode:
    """Return the opening code of the pair that the code belongs to."""
    return EventCode(code & ~1) if code < EventCode.SLICES else code


def order(event: Event) -> tuple[int, int, int, str, int]:
    """Return the sort key: by time, then a job's start, closing events, steps, opening events, the job's end."""
    code = event.code
    if code is EventCode.JOB_START:
        turn = 0
    elif code is EventCode.JOB_END:
        turn = 4
    elif code is EventCode.STEP_START:
        turn = 2
    else:
        turn = 1 if code < EventCode.SLICES and code % 2 else 3
    return event.t, turn, code, str(event.arg) if not isinstance(event.arg, int) else f"{event.arg:012}", event.rank


def trusted_events(events: Iterable[Event], now: int) -> list[Event]:
    """Return the events that are known at `now` and count (R2, R6), in order."""
    unique = {event._replace(run="") for event in events}
    known = {event for event in unique if event.t <= now}
    speakers = {event.rank for event in unique if event.code not in CHECKPOINTS and event.code is not EventCode.ALIVE}
    authority = min(speakers, default=0)
    log: list[Event] = []
    steps: dict[object, int] = {}
    edges: dict[EventCode, int] = {}
    for event in sorted(known, key=order):
        if event.rank != authority and event.code not in CHECKPOINTS:
            continue
        before = None
        if event.code is EventCode.STEP_START:
            before = steps.get(event.arg)
        elif opens(event.code) in SINGLE:
            before = edges.get(event.code)
        if before is not None and event.t - before <= SECOND:
            continue
        if event.code is EventCode.STEP_START:
            steps[event.arg] = event.t
        elif event.code is EventCode.JOB_START:
            steps.clear()
            edges = {edge: t for edge, t in edges.items() if edge is EventCode.JOB_END}
        edges[event.code] = event.t
        log.append(event)
    return log


def follows(first: Event, steps: Sequence[Event]) -> bool:
    """Whether a step is the next one after those of an attempt: one above, or as far as they are from each other."""
    stride = _index(steps[-1]) - _index(steps[-2]) if len(steps) > 1 else 1
    return 0 < _index(first) - _index(steps[-1]) <= stride


def runs(events: Iterable[Event], now: int) -> list[list[Event]]:
    """The events of each run in a log without run ids (docs/decisions/0009), oldest first."""
    log = trusted_events(events, now)
    logs: list[list[Event]] = [[]]
    for place, event in enumerate(log):
        past = logs[-1]
        last_end = max((i for i, e in enumerate(past) if e.code is EventCode.JOB_END), default=-1)
        last_start = max((i for i, e in enumerate(past) if e.code is EventCode.JOB_START), default=-1)
        begun = any(e.code in (EventCode.JOB_START, EventCode.STEP_START) for e in past[: max(last_end, 0)])
        if event.code is EventCode.JOB_START and begun and last_end > last_start:
            first = next((e for e in log[place:] if e.code is EventCode.STEP_START), None)
            steps = [[step for _, step in tried.steps] for tried in attempts(past) if tried.steps]
            repeats = first is not None and bool(steps) and 0 < _index(first) <= _index(steps[-1][-1])
            if first is None or not steps or not (repeats or follows(first, steps[-1])):
                logs.append([])
        logs[-1].append(event)
    return logs


def job_span(log: Sequence[Event], now: int) -> tuple[int, int, bool]:
    """Return start and end of the job, and whether its end is logged (R1)."""
    starts = [event for event in log if event.code is EventCode.JOB_START]
    begin = starts[0].t if starts else min((event.t for event in log), default=now)
    final = _final_end(log)
    return begin, (now if final is None else max(begin, log[final].t)), final is not None


def attempts(log: Sequence[Event]) -> list[Reading]:
    """Attempts by R2; each but the first with its restart (R4)."""
    final = _final_end(log)
    lasting = len(log) if final is None else final
    readings = [Reading()]
    for place, event in enumerate(log):
        steps = readings[-1].steps
        restarts = event.code is EventCode.JOB_START or (event.code is EventCode.REINIT_START and place < lasting)
        repeats = (
            event.code is EventCode.STEP_START and place < lasting and steps and _index(event) <= _index(steps[-1][1])
        )
        if (restarts and steps) or repeats:
            readings.append(Reading())
        if event.code is EventCode.STEP_START and place < lasting:
            readings[-1].steps.append((place, event))
        elif restarts and (event.code is EventCode.JOB_START or _is_elastic(readings)):
            readings[-1].openings.append(event)
    for old, new in pairwise(readings):
        new.restart = _restart(log, old, new)
    return readings


def _is_elastic(readings: Sequence[Reading]) -> bool:
    """Whether the newest attempt follows steps, and no job start has opened it."""
    return len(readings) > 1 and all(opening.code is not EventCode.JOB_START for opening in readings[-1].openings)


def _restart(log: Sequence[Event], old: Reading, new: Reading) -> int:
    """When an attempt began that follows another one (R2)."""
    if new.openings:
        return new.openings[-1].t
    place, first = new.steps[0]
    between = log[old.steps[-1][0] + 1 : place]
    loads = [event.t for event in between if event.code is EventCode.LOAD_START]
    begins = [event.t for event in between if event.code in RESTARTS]
    return begins[0] if begins else loads[-1] if loads else first.t


def spans(log: Sequence[Event], now: int) -> list[Span]:
    """Everything that has a begin and an end, or is still open (R9); loads are all DATA_LOADING_SYNC here."""
    closed_spans, waiting = _pairs(log)
    for event in log:
        if isinstance(event.arg, CheckpointEvent):
            closed_spans.append(Span(event.t, event.arg.until, Bucket(WHOLE[event.code])))
    for place, event in waiting:
        if not any(_contradicts(later, event) for later in log[place + 1 :]):
            closed_spans.append(Span(event.t, now, _spent(event)))
    return [span for span in closed_spans if span.start < span.end]


def _pairs(log: Sequence[Event]) -> tuple[list[Span], list[tuple[int, Event]]]:
    """Return the closed spans, and the open ones with their position in the log; empty spans do not count.

    A job start after a job start or a step drops what is open, except checkpoints of other ranks.
    """
    closed_spans: list[Span] = []
    waiting: dict[Key, tuple[int, Event]] = {}
    closed: dict[Key, int] = {}
    empty: set[tuple[Key, int]] = set()
    begun = False
    for place, event in enumerate(log):
        if begun and event.code is EventCode.JOB_START:
            waiting = {key: held for key, held in waiting.items() if key[0] in CHECKPOINTS and key[2] != event.rank}
        begun = begun or event.code in (EventCode.JOB_START, EventCode.STEP_START)
        kind = opens(event.code)
        if kind not in SPANS:
            continue
        key = kind, event.arg, event.rank if kind in CHECKPOINTS else 0
        _, opened = waiting.get(key, (0, None))
        if event.code is kind:
            if (opened is None or event.t - opened.t > SECOND) and (key, event.t) not in empty:
                waiting[key] = place, event
        elif opened is not None:
            closed_spans.append(Span(opened.t, event.t, _spent(opened)))
            closed[key] = event.t
            del waiting[key]
        elif key not in closed or event.t - closed[key] > SECOND:
            empty.add((key, event.t))
    return closed_spans, list(waiting.values())


def _contradicts(later: Event, opening: Event) -> bool:
    if later.code in (EventCode.STEP_START, EventCode.JOB_START, EventCode.JOB_END):
        return True
    if opening.code in PHASES and later.code in PHASES and later.code is not opening.code:
        return later.code not in CONTAINS.get(opening.code, ())
    return False


def _spent(opening: Event) -> Bucket:
    return Bucket(SPANS[opening.code], str(opening.arg) if opening.code is EventCode.CUSTOM_START else "")


def _final_end(log: Sequence[Event]) -> int | None:
    """Place of the job end that no job start follows."""
    edges = [place for place, event in enumerate(log) if event.code in (EventCode.JOB_START, EventCode.JOB_END)]
    return edges[-1] if edges and log[edges[-1]].code is EventCode.JOB_END else None


def _index(step: Event) -> int:
    assert isinstance(step.arg, int)
    return step.arg
