"""The steps that all hosts of a job have, side by side. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median, median_low
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.lateness import delays, late_hosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics_diagnosis.lateness import LateHost
    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.summary import HostSummary, Operation


FEWEST_STEPS = 5
LEAST_COVERAGE = 0.8
MOST_REFERENCES = 100
"""Sets of steps that are compared with all others."""


@dataclass(frozen=True)
class Job:
    """Hosts that execute the same program, with the steps that all of them have."""

    summaries: tuple[HostSummary, ...]
    numbers: tuple[int, ...]
    """Steps in order."""
    is_complete: bool
    """Whether no host of the job is missing: an unseen host may be what the others wait for."""

    @property
    def has_steps(self) -> bool:
        """Whether there are enough steps to judge."""
        return len(self.numbers) >= FEWEST_STEPS

    @property
    def waits_together(self) -> bool:
        """Whether the hosts meet in collectives."""
        return len(self.summaries) > 1 and all(each.steps and each.steps.waits for each in self.summaries)

    @cached_property
    def is_covered(self) -> bool:
        """Whether the phases explain enough of the time of most hosts."""
        return bool(self.summaries) and median(each.coverage for each in self.summaries) >= LEAST_COVERAGE

    @cached_property
    def seconds(self) -> tuple[float, ...]:
        """Time of each step: the median of the hosts."""
        return tuple(median(each) for each in zip(*(self._series(host) for host in self.summaries), strict=True))

    @cached_property
    def step_s(self) -> float:
        """Median time of a step."""
        return median(self.seconds) if self.seconds else 0.0

    @cached_property
    def waits(self) -> tuple[tuple[float, ...], ...]:
        """Time in collectives, by host and step."""
        return tuple(self._pick(host, host.steps.waits if host.steps else ()) for host in self.summaries)

    @cached_property
    def delays(self) -> list[list[float]]:
        """Delay behind the others, by host and step."""
        return delays(self.waits)

    @cached_property
    def late_hosts(self) -> list[LateHost]:
        """Hosts that the others wait for, the latest first.

        None where the hosts do not meet.
        """
        return late_hosts(self.delays, self.seconds) if self.waits_together and self.has_steps else []

    @cached_property
    def arrivals(self) -> tuple[tuple[float, ...], ...]:
        """Time from the end of the step before to the first collective, by host and step."""
        return tuple(self._pick(host, host.steps.arrivals if host.steps else ()) for host in self.summaries)

    @cached_property
    def phases(self) -> tuple[Mapping[Phase, tuple[float, ...]], ...]:
        """Time of each phase that occurs, by host and step."""
        return tuple(
            {phase: self._pick(host, series) for phase, series in (host.steps.phases if host.steps else {}).items()}
            for host in self.summaries
        )

    def mean(self, host: int, phase: Phase, steps: Sequence[int] | None = None) -> float:
        """Return the mean time of a phase on a host, over the steps at some places or all."""
        series = self.phases[host].get(phase)
        if not series:
            return 0.0
        return fmean(series if steps is None else [series[step] for step in steps])

    def usual_share(self, phase: Phase) -> float:
        """Return the share of the step that a phase takes on the median host."""
        total = sum(self.seconds)
        usual = median_low(self.mean(host, phase) for host in range(len(self.summaries)))
        return usual * len(self.seconds) / total

    def longest(self, phase: Phase, hosts: Sequence[int] | None = None) -> Operation | None:
        """Return the longest operation of a phase on some hosts."""
        chosen = self.summaries if hosts is None else [self.summaries[host] for host in hosts]
        operations = [each for host in chosen for each in host.operations if each.phase == phase]
        return max(operations, key=lambda each: (each.seconds, each.name), default=None)

    def _series(self, host: HostSummary) -> tuple[float, ...]:
        return self._pick(host, host.steps.seconds if host.steps else ())

    def _pick(self, host: HostSummary, series: Sequence[float]) -> tuple[float, ...]:
        """Return the values of the matched steps."""
        if not host.steps or not series:
            return ()
        if host.steps.numbers == self.numbers:
            return tuple(series)
        index_of = {number: index for index, number in enumerate(host.steps.numbers)}
        return tuple(series[index_of[number]] for number in self.numbers)


def match(summaries: Sequence[HostSummary], *, is_complete: bool) -> tuple[Job, list[HostSummary]]:
    """Return the job of most hosts, and the hosts that are left out.

    The hosts of a job have one program and common steps.

    Args:
        summaries: Summaries in any order.
        is_complete: Whether these are all hosts that run.
    """
    ordered = sorted(summaries, key=lambda each: each.host)
    with_steps = [each for each in ordered if each.steps and each.steps.numbers]
    programs = Counter((each.platform, each.program) for each in with_steps).most_common(2)
    is_tie = len(programs) > 1 and programs[0][1] == programs[1][1]
    chosen = [each for each in with_steps if programs[0][0] == (each.platform, each.program)] if not is_tie else []
    chosen = _of_one_session(chosen)
    numbers = set.intersection(*(set(each.steps.numbers) for each in chosen if each.steps)) if chosen else set()
    names = {each.host for each in chosen}
    left = [each for each in ordered if each.host not in names]
    return Job(tuple(chosen), tuple(sorted(numbers)), is_complete and not left), left


def _of_one_session(hosts: Sequence[HostSummary]) -> list[HostSummary]:
    """Return the most hosts that share steps.

    None if two groups of equal size share none.
    """
    sets = Counter(each.steps.numbers for each in hosts if each.steps)
    if len(sets) < 2 or len(set.intersection(*map(set, sets))) >= FEWEST_STEPS or max(map(len, sets)) < FEWEST_STEPS:
        return list(hosts)
    groups = [_sharing(numbers, sets) for numbers in list(sets)[:MOST_REFERENCES]]
    sizes = [sum(sets[numbers] for numbers in group) for group in groups]
    most = groups[sizes.index(max(sizes))]
    if any(size == max(sizes) and not group & most for size, group in zip(sizes, groups, strict=True)):
        return []
    return [each for each in hosts if each.steps and each.steps.numbers in most]


def _sharing(numbers: tuple[int, ...], sets: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return the sets of steps that have enough in common with one of them."""
    steps = set(numbers)
    return {other for other in sets if len(steps.intersection(other)) >= FEWEST_STEPS or other == numbers}
