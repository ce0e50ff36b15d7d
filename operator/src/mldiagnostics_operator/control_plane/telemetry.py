"""Metrics of the control-plane API: one declaration each, one method per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.process.metrics import Metrics, MetricSpec
from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


_MAX_NAMESPACES: Final = 32
"""Namespaces with a label of their own; the others share an empty one."""


class ControlPlaneMetrics(Metrics):
    """The metrics of the control-plane API in a registry."""

    _requests = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_requests_total",
        "Requests to the control-plane API, by endpoint (reports, peer, other) and HTTP status; 0: closed without one.",
        labels=("endpoint", "status"),
    )
    _duration = MetricSpec(
        Histogram,
        "mldiagnostics_control_plane_report_duration_seconds",
        "Time from the end of a report's body to its answer, without the wait of final reports for the journal.",
        buckets=_SECONDS,
    )
    _rejected = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_rejected_total",
        "Requests that were not served, by reason.",
        labels=("reason",),
    )
    _dropped = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_peer_dropped_total",
        "Requests of the peer's client that were answered and dropped, by reason.",
        labels=("reason",),
    )
    _lookups = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_lookups_total",
        "Look-ups at the API server for reports, by kind (tokenreview, owners, address).",
        labels=("kind",),
    )
    _journal = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_journal_writes_total",
        "Writes of a run's journal, by result (written, failed).",
        labels=("result",),
    )
    _runs = MetricSpec(Gauge, "mldiagnostics_control_plane_runs", "Reported runs in memory.")
    _processes = MetricSpec(Gauge, "mldiagnostics_control_plane_processes", "Processes of reported runs in memory.")
    _limited = MetricSpec(
        Counter,
        "mldiagnostics_control_plane_limited_total",
        "Reports that were refused, kept in part, not persisted or got no MLRun because their namespace has used its "
        "share, by namespace.",
        labels=("namespace",),
    )

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._limited_namespaces: set[str] = set()

    def size(self, runs: Callable[[], int], processes: Callable[[], int]) -> None:
        """Read the numbers of runs and processes from these functions."""
        self._runs.set_function(runs)
        self._processes.set_function(processes)

    def answered(self, endpoint: str, status: int) -> None:
        """Count an answer."""
        self._requests.labels(endpoint=endpoint, status=str(status)).inc()

    def report_took(self, seconds: float) -> None:
        """Observe the time of an answer."""
        self._duration.observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a request or a connection that was not served."""
        self._rejected.labels(reason=reason).inc()

    def limited(self, namespace: str) -> None:
        """Count a report of which its namespace lost a part, or all."""
        if len(self._limited_namespaces) < _MAX_NAMESPACES:
            self._limited_namespaces.add(namespace)
        shown = namespace if namespace in self._limited_namespaces else ""
        self._limited.labels(namespace=shown).inc()

    def peer_dropped(self, reason: str) -> None:
        """Count a request of the peer's client that changes nothing."""
        self._dropped.labels(reason=reason).inc()

    def looked_up(self, kind: str) -> None:
        """Count a look-up."""
        self._lookups.labels(kind=kind).inc()

    def journal_written(self, *, written: bool) -> None:
        """Count a write of the journal."""
        self._journal.labels(result="written" if written else "failed").inc()
