"""Simulated jobs: the bucket of each microsecond, and the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType as B
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode
from support.goodput.notation import T0

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from mldiagnostics.goodput.events.event import Arg

OTHER = Bucket(B.OTHER)
STARTUP = Bucket(B.PROGRAM_STARTUP)
SAVE = Bucket(B.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME)


class Run(NamedTuple):
    """An execution of a step."""

    attempt: int
    step: int


@dataclass(frozen=True)
class Piece:
    """Some time, what it went to, and in which execution of a step."""

    start: int
    end: int
    spent: Bucket | None
    run: Run | None = None


@dataclass(frozen=True)
class Style:
    """Style of a job's log, and its regularity."""

    step_ends: bool = False
    """Whether ends of steps and checkpoints are logged as we do, else as the peer and Orbax do."""
    hosts: int = 1
    jitter: int = 0
    """Milliseconds by which steps differ at most."""


@dataclass
class Job:
    """A job simulated from dice; `events` is its log, `pieces` the truth."""

    dice: Random
    style: Style = field(default_factory=Style)
    clock: int = T0 * 1_000_000
    events: list[Event] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    """Index of the first step of each attempt that made one."""
    closed: set[Run] = field(default_factory=set)
    """Executions that another one of their attempt follows."""
    restarts: int = 0
    overlay: int = 0
    _since: int | None = None
    _crossing: int = 0

    def live(self, attempts: int, steps: int) -> Job:
        """Go through some attempts of at most so many steps; the last ends or goes on. Return itself."""
        self.base = self._some(1500, 6000)
        first, lives = 0, False
        for number in range(attempts):
            elastic = lives and self.dice.random() < 0.2
            self._begin(first, elastic=elastic)
            last = number == attempts - 1
            if not last and self.dice.random() < 0.15:
                self._outage()
                lives = elastic
                continue
            count = self.dice.randint(1, steps)
            fate = self.dice.choice(["end", "run"] if last else ["kill", "kill", "keep", "resume"])
            first, lives = self._train(first, count, fate), fate != "resume"
            if not last:
                self._outage()
        return self

    def truth(self) -> Counter[Bucket | None]:
        """Return the microseconds by bucket, as far as the rules can determine it."""
        sums: Counter[Bucket | None] = Counter()
        for piece in self.pieces:
            sums[self._judged(piece)] += piece.end - piece.start
        return +sums

    def _begin(self, first: int, *, elastic: bool) -> None:
        """Start or restart, initialise, restore, load."""
        if elastic:
            self._elastic_begin(first)
        else:
            self._restarted()
            self._log(EventCode.JOB_START)
            self._idle()
            self._span(EventCode.TPU_INIT_START, self._some(1200, 4000))
            self._idle()
            self._log(EventCode.PREP_START)
            self._prepare(first, Bucket(B.TRAINING_PREP))
            self._log(EventCode.PREP_END)
        self._idle()
        self._span(EventCode.LOAD_START, self._some(400, 3000))
        self._idle()

    def _elastic_begin(self, first: int) -> None:
        wait = self.dice.choice([EventCode.SLICE_DOWN_START, EventCode.SCALE_UP_START])
        self._span(wait, self._some(2000, 9000))
        self._idle()
        self._restarted()
        self._log(EventCode.REINIT_START)
        reinit = Bucket(B.ELASTIC_REINITIALIZATION)
        self._log(EventCode.TPU_INIT_START)
        self._spend(self._some(1200, 3000), reinit)
        self._log(EventCode.TPU_INIT_END)
        self._prepare(first, reinit)
        self._log(EventCode.REINIT_END)

    def _prepare(self, first: int, spent: Bucket) -> None:
        self._spend(self._some(1100, 2000), spent)
        if first > 0:
            self._checkpoint(EventCode.RESTORED, first - 1)
        self._spend(self._some(400, 2000), spent)

    def _train(self, first: int, count: int, fate: str) -> int:
        """Make steps from `first` until fate strikes; return where the next attempt begins."""
        number = len(self.firsts)
        self.firsts.append(first)
        for step in range(first, first + count):
            run = Run(number, step)
            self._since = len(self.pieces)
            self._log(EventCode.STEP_START, step)
            if self._crossing:
                self._spend(self._crossing, Bucket(B.CUSTOM_BADPUT_EVENTS, "EVAL"), run)
                self._log(EventCode.CUSTOM_END, "EVAL")
                self._crossing = 0
            last = step == first + count - 1
            if last and fate in ("kill", "run"):
                self._interrupted(run)
            else:
                self._step(run, compile_time=self._some(0, 9000) if step == first else 0, last=last)
            if not last:
                self.closed.add(run)
        if fate in ("end", "resume"):
            self._log(EventCode.JOB_END)
        done = first + count - 1
        if fate == "resume" or (fate == "keep" and (count > 3 or self.style.step_ends)):
            return done + 1
        if fate == "keep" and not self.style.step_ends:
            self._forget(Run(number, done))
        return self.dice.choice([done, self.dice.randint(0, done), max(0, done - 1), 0])

    def _step(self, run: Run, *, compile_time: int, last: bool) -> None:
        self._spend(compile_time, STARTUP, run)
        parts = self.dice.randint(1, 3)
        work = self.base + self._some(0, self.style.jitter)
        for part in range(parts):
            share = work // parts if part else work - work // parts * (parts - 1)
            if self.dice.random() < 0.2 and share > 900_000:
                self._log(EventCode.LOAD_START)
                self._spend(500_000, None, run)
                self._log(EventCode.LOAD_END)
                self.overlay += 500_000
                share -= 500_000
            self._spend(share, None, run)
            if part < parts - 1:
                self._event(run)
        if self.style.step_ends:
            self._log(EventCode.STEP_END, run.step)
        if not last and self.dice.random() < 0.1:
            self._log(EventCode.CUSTOM_START, "EVAL")
            self._spend(self._some(400, 2000), Bucket(B.CUSTOM_BADPUT_EVENTS, "EVAL"), run)
            self._crossing = self._some(400, 2000)

    def _event(self, run: Run) -> None:
        """Add an event inside a step that is not part of the step's work."""
        kind = self.dice.choice(["save", "save", "eval", "none"])
        if kind == "save":
            self._checkpoint(EventCode.SAVED, run.step, run)
        elif kind == "eval":
            evaluation = Bucket(B.CUSTOM_BADPUT_EVENTS, "EVAL")
            self._log(EventCode.CUSTOM_START, "EVAL")
            self._spend(self._some(400, 2000), evaluation, run)
            if self.dice.random() < 0.3:
                self._log(EventCode.CUSTOM_START, "IO")
                self._spend(self._some(400, 1000), Bucket(B.CUSTOM_BADPUT_EVENTS, "IO"), run)
                self._log(EventCode.CUSTOM_END, "IO")
                self._spend(self._some(400, 1000), evaluation, run)
            self._log(EventCode.CUSTOM_END, "EVAL")

    def _interrupted(self, run: Run) -> None:
        """Add a part of a step whose end is never logged, perhaps with a save that is not logged either."""
        self._spend(self._some(1, self.base // 1000), OTHER, run)
        if self.style.step_ends and self.dice.random() < 0.3 and self.events[-1].code is not EventCode.SAVE_START:
            self._log(EventCode.CAUSE, "preemption")

    def _outage(self) -> None:
        self._spend(self._some(2000, 60_000), OTHER)

    def _checkpoint(self, code: EventCode, step: int, run: Run | None = None) -> None:
        """A save or a restore by all hosts at about the same time: training waits for all of them."""
        start = self.clock
        ends = []
        for rank in range(self.style.hosts):
            begin = start + (self._some(0, 400) if rank else 0)
            ends.append(begin + self._some(500, 3000))
            if self.style.step_ends:
                opening = EventCode.SAVE_START if code is EventCode.SAVED else EventCode.RESTORE_START
                self.events += [Event(begin, opening, step, rank), Event(ends[-1], EventCode(opening + 1), step, rank)]
            else:
                self.events.append(Event(begin, code, CheckpointEvent(ends[-1], step, "persistent"), rank))
        spent = SAVE if code is EventCode.SAVED else Bucket(B.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME)
        self._spend(max(ends) - start, spent, run)

    def _span(self, opening: EventCode, time: int) -> None:
        spent = {
            EventCode.TPU_INIT_START: B.TPU_INITIALIZATION,
            EventCode.LOAD_START: B.DATA_LOADING_SYNC,
            EventCode.SLICE_DOWN_START: B.ELASTIC_SLICE_DOWN,
            EventCode.SCALE_UP_START: B.ELASTIC_SCALE_UP,
        }[opening]
        self._log(opening)
        self._spend(time, Bucket(spent))
        self._log(EventCode(opening + 1))

    def _idle(self) -> None:
        self._spend(self._some(400, 900), OTHER)

    def _restarted(self) -> None:
        """End the previous attempt: its time since the start of its last step is recovery."""
        if self._since is None:
            return
        recovery = Bucket(B.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION)
        self.pieces[self._since :] = [
            replace(piece, spent=recovery) if piece.spent == OTHER else piece for piece in self.pieces[self._since :]
        ]
        openings = (EventCode.JOB_START, EventCode.REINIT_START)
        self.restarts += all(event.code not in openings for event in self._after_last_step())

    def _after_last_step(self) -> Iterator[Event]:
        for event in reversed(self.events):
            if event.code is EventCode.STEP_START:
                return
            yield event

    def _forget(self, run: Run) -> None:
        """Forget a step without a logged end and without a next step: nothing shows that it was done."""
        assert self._since is not None
        self.pieces[self._since :] = [
            replace(piece, spent=OTHER) if piece.run == run and piece.spent in (None, STARTUP) else piece
            for piece in self.pieces[self._since :]
        ]

    def _judged(self, piece: Piece) -> Bucket | None:
        run = piece.run
        if run is None or piece.spent not in (None, STARTUP):
            return piece.spent
        if not self._survives(run):
            return Bucket(B.WASTED_PROGRESS_FROM_DISRUPTION)
        others = [other for other in self.closed if other.attempt == run.attempt and other != run]
        known = run in self.closed and any(self._survives(other) for other in others)
        return piece.spent if known or piece.spent is None else None

    def _survives(self, run: Run) -> bool:
        return all(first > run.step for first in self.firsts[run.attempt + 1 :])

    def _log(self, code: EventCode, arg: Arg = 0) -> None:
        self.events.append(Event(self.clock, code, arg))

    def _spend(self, time: int, spent: Bucket | None, run: Run | None = None) -> None:
        if time:
            self.pieces.append(Piece(self.clock, self.clock + time, spent, run))
            self.clock += time

    def _some(self, low: int, high: int) -> int:
        """Some whole milliseconds, in microseconds."""
        return self.dice.randint(low, high) * 1000
