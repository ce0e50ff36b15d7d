"""Accounts of a log by definition: cut time wherever anything happens, decide each piece by the rules. Slow."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.account import Account, Bucket, TimelineSegment
from mldiagnostics.goodput.buckets import BadputType as B
from mldiagnostics.goodput.events.event import EventCode, SliceCounts
from support.goodput.reading import WAITS, attempts, follows, job_span, spans, trusted_events
from support.goodput.stretches import Piece, common, merged, seen, union, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mldiagnostics.goodput.events.event import Event
    from support.goodput.reading import Reading

OTHER = Bucket(B.OTHER)
WASTED = Bucket(B.WASTED_PROGRESS_FROM_DISRUPTION)
RECOVERY = Bucket(B.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION)
STARTUP = Bucket(B.PROGRAM_STARTUP)
INITS = {B.TPU_INITIALIZATION, B.TRAINING_PREP, B.ELASTIC_REINITIALIZATION}

Claim = tuple[int, int, Bucket | None, int | None]


@dataclass
class Execution:
    """One time that a step ran: in which pieces of time, whether it is known to be done, and whether it counts."""

    attempt: int
    step: int
    start: int
    end: int
    pieces: list[Piece]
    closed: bool
    done: bool
    survives: bool


class Loss(NamedTuple):
    """A disruption, with the values that the rules determine."""

    lost: int
    restarted: int
    resumed: int | None
    cause: str
    steps_lost: int
    wasted: int
    init: int
    restore: int
    first_step: int


class Oracle:
    """All results for one run, as of `now`, from its events in any order."""

    def __init__(self, events: Iterable[Event], now: int) -> None:
        self.now = now
        self.log = trusted_events(events, now)
        self.begin, self.end, self.ended = job_span(self.log, now)
        self.tries = attempts(self.log)
        all_spans = spans(self.log, now)
        loads = sorted(span for span in all_spans if span.spent.bucket is B.DATA_LOADING_SYNC)
        after = [[load for load in loads if load.start >= begin] for begin in self._begins()]
        self.first_loads = {executions[0] for executions in after if executions}
        self.beside = [span for span in loads if span not in self.first_loads]
        self.painted = seen([span for span in all_spans if span not in self.beside])
        self.executions = [run for number, tried in enumerate(self.tries) for run in self._executions(number, tried)]
        self.startups = [piece for number in range(len(self.tries)) for piece in self._startup(number)]

    def timeline(self, start: int | None = None, end: int | None = None) -> list[TimelineSegment]:
        """Return the job's activity over time, in maximal pieces."""
        start, end = self._stretch(start, end)
        cuts = {start, end}
        for a, b, _ in self.painted:
            cuts |= {a, b}
        for a, b, _, _ in (claims := list(self._claims())):
            cuts |= {a, b}
        at = sorted(cut for cut in cuts if start <= cut <= end)
        return merged(TimelineSegment(a, b, *self._at(a, claims)) for a, b in pairwise(at))

    def account(
        self, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the sums of the timeline without the excluded stretches."""
        start, end = self._stretch(start, end)
        kept = without((start, end), exclude)
        sums: Counter[Bucket | None] = Counter()
        for segment in self.timeline(start, end):
            sums[segment.spent] += sum(common((segment.start, segment.end), piece) for piece in kept)
        elapsed = sum(b - a for a, b in kept)
        done = [run.step for run in self.executions if run.done and run.survives and self.begin <= run.end <= end]
        begun = [run.step for run in self.executions if self.begin <= run.start < end]
        return Account(
            start=start,
            end=end,
            elapsed=elapsed,
            excluded=end - start - elapsed,
            productive=sums[None],
            unproductive={spent: time for spent, time in sums.items() if spent and time},
            overlay=sum(union(self.beside, piece) for piece in kept),
            disruptions=sum(start < loss.restarted <= end for loss in self.losses()),
            max_step=max(done, default=None),
            last_step=begun[-1] if begun else None,
        )

    def losses(self) -> list[Loss]:
        """Return the disruptions between start and end of the job, oldest first."""
        return [self._loss(number) for number in range(1, len(self.tries)) if self.tries[number].restart > self.begin]

    def step_times(self) -> dict[int, int]:
        """Net duration of each step that is done, not lost, and followed by another step of its attempt."""
        return {run.step: self._net(run) for run in self.executions if run.closed and run.survives}

    def ideal_step_time(self) -> int | None:
        """Mean of the step times that are not above median + 3 MAD; below a second they count unless they are few."""
        times = list(self.step_times().values())
        short = [time for time in times if time < 1_000_000]
        if len(short) < len(times) - len(short):
            times = [time for time in times if time not in short]
        if not times:
            return None
        middle = statistics.median(times)
        spread = statistics.median(abs(time - middle) for time in times)
        normal = [time for time in times if time <= middle + 3 * spread]
        return sum(normal) // len(normal)

    def slices(self, start: int, end: int) -> tuple[float, float] | None:
        """Active and available slices as a share of all, on average over the stretch."""
        counts_at = [
            (event.t, event.arg)
            for event in self.log
            if event.code is EventCode.SLICES and isinstance(event.arg, SliceCounts)
        ]
        active = available = 0.0
        for (since, counts), until in zip(
            counts_at, [*[t for t, _ in counts_at[1:]], max(end, self.now)], strict=False
        ):
            covered = common((since, until), (start, end))
            active += covered * counts.active / max(counts.total, 1)
            available += covered * counts.available / max(counts.total, 1)
        return (active / (end - start), available / (end - start)) if counts_at and start < end else None

    def _begins(self) -> list[int]:
        """Moments after which the first load blocks (R5)."""
        openings = [event.t for tried in self.tries for event in tried.openings]
        restarts = [tried.restart for tried in self.tries[1:]]
        first = [] if self.tries[0].openings or not self.log else [self.log[0].t]
        return first + openings + restarts

    def _executions(self, number: int, tried: Reading) -> list[Execution]:
        later = [each.steps[0][1].arg for each in self.tries[number + 1 :] if each.steps]
        executions = []
        for place, (_, event) in enumerate(tried.steps):
            assert isinstance(event.arg, int)
            followed = place + 1 < len(tried.steps)
            until = tried.steps[place + 1][1].t if followed else event.t
            survives = all(isinstance(first, int) and first > event.arg for first in later)
            pieces = [(event.t, until)]
            executions.append(Execution(number, event.arg, event.t, until, pieces, followed, followed, survives))
        if executions:
            self._finish(executions, number, tried)
        return executions

    def _finish(self, runs: list[Execution], number: int, tried: Reading) -> None:
        """Decide when the last step of an attempt was over (R4)."""
        last = runs[-1]
        successor = self.tries[number + 1] if number + 1 < len(self.tries) else None
        resumed = successor.steps[0] if successor and successor.steps else None
        rest = self.log[tried.steps[-1][0] + 1 : resumed[0] if resumed else None]
        openings = successor.openings if successor else []
        rest = list(takewhile(lambda event: event not in openings, rest))
        bound = successor.restart if successor else self.end
        again = resumed[1].arg if resumed else None
        repeated = isinstance(again, int) and again <= last.step
        job_ends = [event.t for event in rest if event.code is EventCode.JOB_END and not repeated]
        step_ends = [e.t for e in rest if e.code is EventCode.STEP_END and e.arg == last.step and e.t > last.start]
        if job_ends or step_ends:
            last.end = min(job_ends[-1] if job_ends else step_ends[0], bound)
            last.pieces, last.done = [(last.start, last.end)], True
        elif resumed and follows(resumed[1], [event for _, event in tried.steps]):
            times = sorted(self._net(run) for run in runs[:-1]) or [0]
            middle = (times[(len(times) - 1) // 2] + times[len(times) // 2]) // 2
            last.pieces, last.done = list(self._free(last.start, bound, middle)), True
            last.end = last.pieces[-1][1] if last.pieces else last.start

    def _startup(self, number: int) -> list[tuple[int, int, int]]:
        """The part of an attempt's first step that is above the mean of its other steps (R7)."""
        runs = [run for run in self.executions if run.attempt == number]
        if not runs or not (runs[0].closed and runs[0].survives):
            return []
        others = [self._net(run) for run in runs[1:] if run.closed and run.survives]
        extra = max(0, self._net(runs[0]) - sum(others) // len(others)) if others else 0
        return [(a, b, runs[0].step) for a, b in self._free(runs[0].start, runs[0].end, extra)]

    def _loss(self, number: int) -> Loss:
        new, old = self.tries[number], [run for run in self.executions if run.attempt == number - 1]
        resumed = new.steps[0][1].t if new.steps else None
        firsts = [each.steps[0][1].arg for each in self.tries[1 : number + 1] if each.steps]
        gone = [run for run in self.executions if run.attempt < number and run.done and self._lost_at(run) == number]
        until = self.end if resumed is None else resumed
        began = [run.end for run in self.executions if run.attempt == number][:1] or [until]
        causes = [e.arg for e in self.log if e.code is EventCode.CAUSE and old[0].start <= e.t <= new.restart]
        waits = [e for e in self.log if e.code in WAITS and old[-1].end <= e.t <= until]
        wait = ("slice_down" if waits[-1].code is EventCode.SLICE_DOWN_START else "scale_up") if waits else "unknown"
        assert firsts or resumed is None
        return Loss(
            lost=max(old[-1].end, self.begin),
            restarted=new.restart,
            resumed=resumed,
            cause=str(causes[-1]) if causes else wait,
            steps_lost=len(gone),
            wasted=sum(self._net(run, since=self.begin) for run in gone),
            init=self._covered((new.restart, until), INITS),
            restore=self._covered((new.restart, until), {B.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME}),
            first_step=sum(b - a for a, b, _ in self._startup(number))
            + self._covered((new.restart, began[0]), {B.PROGRAM_STARTUP}),
        )

    def _lost_at(self, run: Execution) -> int | None:
        """The attempt that first does an execution's step again."""
        for number in range(run.attempt + 1, len(self.tries)):
            steps = self.tries[number].steps
            if steps and isinstance(steps[0][1].arg, int) and steps[0][1].arg <= run.step:
                return number
        return None

    def _claims(self) -> Iterator[Claim]:
        """Yield the claims on time that no span covers, the strongest first."""
        for a, b, step in self.startups:
            yield a, b, STARTUP, step
        for run in self.executions:
            for a, b in run.pieces:
                yield a, b, None if run.survives else WASTED, run.step
        for old, new in pairwise(self.tries):
            yield old.steps[-1][1].t, new.restart, RECOVERY, None

    def _at(self, moment: int, claims: Sequence[Claim]) -> tuple[Bucket | None, int | None]:
        for a, b, spent in self.painted:
            if a <= moment < b:
                return spent, None
        for a, b, claimed, step in claims:
            if a <= moment < b:
                return claimed, step
        return OTHER, None

    def _stretch(self, start: int | None, end: int | None) -> Piece:
        first = min(max(self.begin, self.begin if start is None else start), self.end)
        last = min(self.end, self.end if end is None else end)
        return first, max(first, last)

    def _net(self, run: Execution, since: int = 0) -> int:
        pieces = [(max(a, since), b) for a, b in run.pieces if b > since]
        return sum(b - a for a, b in pieces) - sum(map(self._covered, pieces))

    def _covered(self, stretch: Piece, buckets: Iterable[B] = tuple(B)) -> int:
        return sum(common((a, b), stretch) for a, b, spent in self.painted if spent.bucket in buckets)

    def _free(self, start: int, end: int, amount: int) -> Iterator[Piece]:
        """The first `amount` of a stretch that no span covers."""
        for a, b in without((start, end), [(a, b) for a, b, _ in self.painted]):
            if amount > 0:
                yield a, min(b, a + amount)
            amount -= b - a
