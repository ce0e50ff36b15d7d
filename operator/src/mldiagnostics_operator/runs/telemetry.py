"""Metrics of runs: one declaration each, one method per event."""

from __future__ import annotations

from collections import Counter as Counted
from typing import TYPE_CHECKING, Final, NamedTuple

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics_api.runs.signals import Signal
from mldiagnostics_kube.process.metrics import Metrics, MetricSpec
from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mldiagnostics_api.v1alpha1 import RunGoodput


PRODUCTIVE: Final = "productive"
_CAUSES: Final = tuple(kind.name.lower() for kind in BadputType)
_OTHER: Final = BadputType.OTHER.name.lower()
MAX_SIGNALS: Final = 100
"""Raised signals with a time series of their own; a scrape of as many has 12 KiB."""


class RaisedSignal(NamedTuple):
    """A raised signal of a run; sorts by the time at which it was raised."""

    since: float
    namespace: str
    run: str
    signal: Signal


class RunMetrics(Metrics):
    """The metrics of runs in a registry."""

    _phases = MetricSpec(
        Counter, "mldiagnostics_run_phases_total", "Changes of a run's phase, by the new phase.", labels=("phase",)
    )
    _created = MetricSpec(Counter, "mldiagnostics_runs_recorded_total", "Runs that this operator created.")
    _missing = MetricSpec(
        Gauge,
        "mldiagnostics_runs_resource_missing",
        "1 while the leader records no run because the resource MLRun is not served to it. Captures go on.",
    )
    _status_writes = MetricSpec(
        Counter,
        "mldiagnostics_run_status_writes_total",
        "Writes of a run's status, by result (written, gone, failed).",
        labels=("result",),
    )
    _followed = MetricSpec(Gauge, "mldiagnostics_runs_unfinished", "Unfinished runs that the leader follows.")
    _signals = MetricSpec(
        Gauge, "mldiagnostics_runs_signalled", "Unfinished runs with a raised signal, by signal.", labels=("signal",)
    )
    _run_signal = MetricSpec(
        Gauge,
        "mldiagnostics_run_signal",
        "1 while a signal of a run is raised. Of at most 100 signals, those raised first; "
        "mldiagnostics_runs_signalled counts all.",
        labels=("run_namespace", "run", "signal"),
    )
    _time = MetricSpec(
        Gauge,
        "mldiagnostics_runs_time_seconds",
        "Time of the unfinished runs by their accounts of goodput: productive, or lost by cause; custom causes "
        "together.",
        labels=("cause",),
    )
    _left_out = MetricSpec(
        Gauge, "mldiagnostics_workloads_left_out", "Changes of workloads that the leader had no room for."
    )

    def missing(self, *, missing: bool) -> None:
        """Set whether no run is recorded because the resource is not served."""
        self._missing.set(missing)

    def created(self) -> None:
        """Count a run that this operator created."""
        self._created.inc()

    def phase(self, after: str) -> None:
        """Count a change of a run's phase."""
        self._phases.labels(phase=after).inc()

    def status_written(self, result: str) -> None:
        """Count a write of a run's status: `written`, `gone` (deleted) or `failed`."""
        self._status_writes.labels(result=result).inc()

    def followed(self, unfinished: int, *, left_out: int) -> None:
        """Set the number of unfinished runs, and of changes of workloads without room."""
        self._followed.set(unfinished)
        self._left_out.set(left_out)

    def signals(self, raised: Collection[RaisedSignal]) -> None:
        """Set the raised signals of all runs."""
        counts = Counted(str(each.signal) for each in raised)
        for signal in Signal:
            self._signals.labels(signal=str(signal)).set(counts[str(signal)])
        self._run_signal.clear()
        for each in sorted(raised)[:MAX_SIGNALS]:
            self._run_signal.labels(run_namespace=each.namespace, run=each.run, signal=str(each.signal)).set(1)

    def time(self, accounts: Iterable[RunGoodput]) -> None:
        """Set the time of all unfinished runs by cause."""
        seconds = dict.fromkeys((PRODUCTIVE, *_CAUSES), 0.0)
        for account in accounts:
            seconds[PRODUCTIVE] += account.productive_seconds or 0.0
            for name, lost in (account.unproductive_seconds or {}).items():
                cause = name.lower().partition(".")[0]
                seconds[cause if cause in seconds else _OTHER] += lost
        for cause, total in seconds.items():
            self._time.labels(cause=cause).set(total)
