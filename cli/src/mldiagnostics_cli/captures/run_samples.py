"""A run outside a cluster as triggers see it, from its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.locations import DEFAULT_STORAGE
from mldiagnostics.runs import goodput
from mldiagnostics_api.runs.signals import HostSample, RunSample, Signal, SignalState, SignalThresholds, readings
from mldiagnostics_api.schedules.trigger_sample import TriggerSample

from mldiagnostics_cli.captures.cluster_target import ClusterTarget, parse_targets
from mldiagnostics_cli.sources import find, is_run_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report.model import TimeBreakdown
    from mldiagnostics.runs import RankRow
    from mldiagnostics.runs.run_record import RecordedRun


ACCOUNT_S: Final = 30.0
"""Time between two accounts, which read the records."""


def is_of_files(target: Sequence[str], storage: str | None) -> bool:
    """Return whether a command names one run by its files, which may come later.

    Args:
        target: The arguments of `mldiag capture`.
        storage: Root of the runs, if it is given.
    """
    if len(target) != 1:
        return False
    named = ClusterTarget(run=target[0]) if is_run_directory(target[0]) else parse_targets(tuple(target), None)
    return bool(named and named.run) and (bool(storage) or Path(DEFAULT_STORAGE).is_dir())


@dataclass(frozen=True, slots=True)
class SampledRun:
    """A run at one moment."""

    sample: TriggerSample | None = None
    """None before it exists."""
    started: float = 0.0
    phase: str = ""
    """Its phase if it has ended."""
    problem: str = ""
    """Why it cannot be read yet."""


@dataclass(slots=True)
class RunSamples:
    """Reads a run again and again.

    Args:
        run: Id of the run, the beginning of it, its name, or its directory.
        storage: Root of the runs.
    """

    run: str
    storage: str
    _signals: dict[Signal, SignalState] = field(default_factory=dict)
    _steps: dict[str, tuple[int | None, float]] = field(default_factory=dict)
    """Step of each process, and since when."""
    _account: TimeBreakdown | None = None
    _accounted: float = 0.0

    def read(self, now: float) -> SampledRun:
        """Return the run now; one that cannot be read yet is not there."""
        try:
            known = find(self.storage, self.run)
        except MLDiagnosticsError as error:
            return SampledRun(problem=str(error))
        row = known.row
        if row.phase in FINAL:
            return SampledRun(started=row.created or 0.0, phase=row.phase)
        if abs(now - self._accounted) >= ACCOUNT_S:
            self._accounted, self._account = now, _account_of(known)
        account = self._account
        sample = TriggerSample(
            attempt=row.attempt or 0,
            step=row.step,
            step_time_s=row.step_time_s,
            host_step_times={f"rank {each.rank}": each.step_time_s for each in known.ranks if each.step_time_s},
            signals=self._raised(known, account, now),
            goodput=account.goodput if account else None,
            elapsed_s=account.elapsed_s if account else 0.0,
            unproductive_s=account.unproductive_s if account else {},
        )
        return SampledRun(sample, row.created or 0.0)

    def _raised(self, known: RecordedRun, account: TimeBreakdown | None, now: float) -> dict[str, str]:
        """Return the messages of the raised signals, as the operator computes them."""
        hosts = [self._host(each, now) for each in known.ranks]
        sample = RunSample(
            now=now,
            hosts=hosts,
            goodput=account.goodput if account else None,
            elapsed_s=account.elapsed_s if account else 0.0,
        )
        raised: dict[str, str] = {}
        for signal, reading in readings(sample, SignalThresholds()).items():
            state = self._signals[signal] = self._signals.get(signal, SignalState()).next(reading, now)
            if state.raised:
                raised[str(signal)] = reading.message or str(signal)
        return raised

    def _host(self, rank: RankRow, now: float) -> HostSample:
        name = f"rank {rank.rank}"
        before, changed = self._steps.get(name, (None, now))
        if rank.step != before:
            changed = now
        self._steps[name] = rank.step, changed
        return HostSample(
            name=name,
            received=now if rank.heartbeat is None else rank.heartbeat,
            changed=None if rank.step is None else changed,
            step_time_s=rank.step_time_s,
            ended=rank.ended is not None,
        )


def _account_of(known: RecordedRun) -> TimeBreakdown | None:
    try:
        report = goodput(known.row)
    except MLDiagnosticsError:
        return None
    return None if report is None else report.cumulative
