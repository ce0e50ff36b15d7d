"""Metrics of the operator: one declaration per metric, one method per event."""

import sys
from typing import Final

from mldiagnostics_kube.process import metrics
from mldiagnostics_kube.process.metrics import MetricSpec, ProcessMetrics
from prometheus_client import Counter, Gauge, Histogram, Info

from mldiagnostics_operator.control_plane.telemetry import ControlPlaneMetrics
from mldiagnostics_operator.runs.telemetry import RunMetrics

_CAPTURE_SECONDS: Final = (1, 2, 5, 10, 20, 40, 60, 90, 120, 180, 300, 600)
_DELAY_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SKEW_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class OperatorMetrics(ProcessMetrics):
    """The metrics of one operator process, in a registry of their own.

    Label values are bounded. Namespaces and object names are never labels, except of the runs whose signals were raised
    first.
    """

    _build = MetricSpec(Info, "mldiagnostics_operator", "Version of the operator and name of the cluster.")
    _leader = MetricSpec(Gauge, "mldiagnostics_operator_leader", "1 while this replica holds the Lease.")
    _standing_down = MetricSpec(
        Gauge,
        "mldiagnostics_operator_standing_down",
        "1 while a managed add-on owns the resource and this operator captures nothing.",
    )
    _resource_missing = MetricSpec(
        Gauge,
        "mldiagnostics_operator_resource_missing",
        "1 while the leader waits for a custom resource that is not installed.",
    )
    _watch_lag = MetricSpec(
        Gauge,
        "mldiagnostics_watch_lag_seconds",
        "Age of the oldest change in the API server that the watch of this operator has not delivered.",
    )
    _captures = MetricSpec(
        Counter, "mldiagnostics_captures_total", "Finished captures, by result and reason.", labels=("result", "reason")
    )
    _duration = MetricSpec(
        Histogram,
        "mldiagnostics_capture_duration_seconds",
        "Time from a capture's start to its end, by result.",
        labels=("result",),
        buckets=_CAPTURE_SECONDS,
    )
    _start_delay = MetricSpec(
        Histogram,
        "mldiagnostics_capture_start_delay_seconds",
        "Time from a capture's creation to its first request to a profiler, queueing included.",
        buckets=_DELAY_SECONDS,
    )
    _start_skew = MetricSpec(
        Histogram,
        "mldiagnostics_capture_start_skew_seconds",
        "Time between the first and the last host's start within one capture.",
        buckets=_SKEW_SECONDS,
    )
    _targets = MetricSpec(
        Counter,
        "mldiagnostics_capture_targets_total",
        "Targets of captures, by state and reason.",
        labels=("state", "reason"),
    )
    _stored_bytes = MetricSpec(Counter, "mldiagnostics_trace_bytes_total", "Bytes of stored traces.")
    _automatic = MetricSpec(
        Counter,
        "mldiagnostics_automatic_captures_total",
        "Captures of schedules, by result (created, rejected by the API server, refused by a limit), and their cause: "
        "the trigger, `Slot`, or the limit that refused them.",
        labels=("result", "cause"),
    )
    _queued = MetricSpec(Gauge, "mldiagnostics_captures_queued", "Captures that wait for admission.")
    _in_flight = MetricSpec(Gauge, "mldiagnostics_captures_in_flight", "Captures that run in this replica.")
    _status_writes = MetricSpec(
        Counter,
        "mldiagnostics_status_writes_total",
        "Writes of a capture's status, by result (written, gone, failed).",
        labels=("result",),
    )
    _work_failures = MetricSpec(
        Counter,
        "mldiagnostics_work_failures_total",
        "Failures after which work of the leader started again, by work (control plane, runs, API for files). "
        "Captures go on.",
        labels=("work",),
    )
    _files_answered = MetricSpec(
        Counter,
        "mldiagnostics_files_requests_total",
        "Requests for files of the volume that API servers passed on from readers, by HTTP status.",
        labels=("status",),
    )
    _watches = MetricSpec(
        Gauge,
        "mldiagnostics_operator_watches",
        "Watches of workloads and runs, by state (unknown, followed, behind, absent, forbidden).",
        labels=("state",),
    )

    def __init__(self) -> None:
        super().__init__()
        self.control_plane = ControlPlaneMetrics(self.registry)
        self.runs = RunMetrics(self.registry)

    def leading(self, *, leader: bool) -> None:
        """Set whether this replica leads."""
        self._leader.set(leader)

    def standing_down(self, *, aside: bool) -> None:
        """Set whether a managed add-on keeps this operator from capturing."""
        self._standing_down.set(aside)

    def resource_missing(self, *, missing: bool) -> None:
        """Set whether a custom resource is not installed."""
        self._resource_missing.set(missing)

    def watch_lag(self, seconds: float) -> None:
        """Set how far the watch is behind the API server."""
        self._watch_lag.set(seconds)

    def automatic_capture(self, result: str, cause: str) -> None:
        """Count a capture of a schedule: `created`, `rejected` or `refused`."""
        self._automatic.labels(result=result, cause=cause).inc()

    def queue(self, *, queued: int, in_flight: int) -> None:
        """Set how many captures wait and how many run."""
        self._queued.set(queued)
        self._in_flight.set(in_flight)

    def capture_started(self, *, delay_s: float) -> None:
        """Count a capture's first request, `delay_s` after its creation."""
        self._start_delay.observe(max(delay_s, 0.0))

    def capture_ended(self, *, result: str, reason: str, duration_s: float | None = None) -> None:
        """Count a finished capture; one that never ran has no duration."""
        self._captures.labels(result=result, reason=reason).inc()
        if duration_s is not None:
            self._duration.labels(result=result).observe(max(duration_s, 0.0))

    def target_ended(self, *, state: str, reason: str, stored_bytes: int = 0) -> None:
        """Count a target's outcome and the bytes that it stored."""
        self._targets.labels(state=state, reason=reason).inc()
        self._stored_bytes.inc(stored_bytes)

    def start_skew(self, seconds: float) -> None:
        """Observe how far apart the hosts of one capture started."""
        self._start_skew.observe(seconds)

    def status_written(self, result: str) -> None:
        """Count a status write: `written`, `gone` (the object was deleted) or `failed`."""
        self._status_writes.labels(result=result).inc()

    def work_failed(self, work: str) -> None:
        """Count a failure of one part of the leader's work, such as `runs`."""
        self._work_failures.labels(work=work).inc()

    def files_answered(self, status: int) -> None:
        """Count an answer of the API for files."""
        self._files_answered.labels(status=str(status)).inc()

    def watch(self, kind: str, *, before: str, now: str) -> None:  # noqa: ARG002 - one gauge for all kinds
        """Record that a watch went from one state to another; `stopped` is not counted."""
        if before != now:
            self._watches.labels(state=before).dec()
        if now != "stopped" and (before != now or now == "unknown"):
            self._watches.labels(state=now).inc()

    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        """Do nothing: a kind has several watches, and `runs.followed` has their sums."""


def reference() -> str:
    """Return the reference page of the metrics as Markdown."""
    return metrics.reference(
        OperatorMetrics().registry,
        title="Metrics of the operator",
        module="mldiagnostics_operator.telemetry",
        notes="Served at `/metrics`, beside the\nusual `process_*`. "
        "Only the leader counts captures; the reasons are those of the status of captures.",
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
