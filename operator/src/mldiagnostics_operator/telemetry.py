"""Metrics of the operator: one declaration per metric, one method per event."""

import sys
from typing import Final, Self

from mldiagnostics_kube.process import metrics
from mldiagnostics_kube.process.metrics import MetricSpec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

from mldiagnostics_operator.control_plane.telemetry import ControlPlaneMetrics
from mldiagnostics_operator.runs.telemetry import RunMetrics

_CAPTURE_SECONDS: Final = (1, 2, 5, 10, 20, 40, 60, 90, 120, 180, 300, 600)
_DELAY_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SKEW_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)

_BUILD: Final = MetricSpec(Info, "mldiagnostics_operator", "Version of the operator and name of the cluster.")
_LEADER: Final = MetricSpec(Gauge, "mldiagnostics_operator_leader", "1 while this replica holds the Lease.")
_STANDING_DOWN: Final = MetricSpec(
    Gauge,
    "mldiagnostics_operator_standing_down",
    "1 while a managed add-on owns the resource and this operator captures nothing.",
)
_RESOURCE_MISSING: Final = MetricSpec(
    Gauge,
    "mldiagnostics_operator_resource_missing",
    "1 while the leader waits for a custom resource that is not installed.",
)
_WATCH_LAG: Final = MetricSpec(
    Gauge,
    "mldiagnostics_watch_lag_seconds",
    "Age of the oldest change in the API server that the watch of this operator has not delivered.",
)
_CAPTURES: Final = MetricSpec(
    Counter, "mldiagnostics_captures_total", "Finished captures, by result and reason.", labels=("result", "reason")
)
_DURATION: Final = MetricSpec(
    Histogram,
    "mldiagnostics_capture_duration_seconds",
    "Time from a capture's start to its end, by result.",
    labels=("result",),
    buckets=_CAPTURE_SECONDS,
)
_START_DELAY: Final = MetricSpec(
    Histogram,
    "mldiagnostics_capture_start_delay_seconds",
    "Time from a capture's creation to its first request to a profiler, queueing included.",
    buckets=_DELAY_SECONDS,
)
_START_SKEW: Final = MetricSpec(
    Histogram,
    "mldiagnostics_capture_start_skew_seconds",
    "Time between the first and the last host's start within one capture.",
    buckets=_SKEW_SECONDS,
)
_TARGETS: Final = MetricSpec(
    Counter,
    "mldiagnostics_capture_targets_total",
    "Targets of captures, by state and reason.",
    labels=("state", "reason"),
)
_STORED_BYTES: Final = MetricSpec(Counter, "mldiagnostics_trace_bytes_total", "Bytes of stored traces.")
_AUTOMATIC: Final = MetricSpec(
    Counter,
    "mldiagnostics_automatic_captures_total",
    "Captures of schedules, by result (created, rejected by the API server, refused by a limit), and their cause: the "
    "trigger, `Slot`, or the limit that refused them.",
    labels=("result", "cause"),
)
_QUEUED: Final = MetricSpec(Gauge, "mldiagnostics_captures_queued", "Captures that wait for admission.")
_IN_FLIGHT: Final = MetricSpec(Gauge, "mldiagnostics_captures_in_flight", "Captures that run in this replica.")
_STATUS_WRITES: Final = MetricSpec(
    Counter,
    "mldiagnostics_status_writes_total",
    "Writes of a capture's status, by result (written, gone, failed).",
    labels=("result",),
)
_WORK_FAILURES: Final = MetricSpec(
    Counter,
    "mldiagnostics_work_failures_total",
    "Failures after which work of the leader started again, by work (control plane, runs, API for files). "
    "Captures go on.",
    labels=("work",),
)
_FILES_ANSWERED: Final = MetricSpec(
    Counter,
    "mldiagnostics_files_requests_total",
    "Requests for files of the volume that API servers passed on from readers, by HTTP status.",
    labels=("status",),
)
_WATCHES: Final = MetricSpec(
    Gauge,
    "mldiagnostics_operator_watches",
    "Watches of workloads and runs, by state (unknown, followed, behind, absent, forbidden).",
    labels=("state",),
)


class OperatorMetrics:
    """The metrics of one operator process, in a registry of their own.

    Label values are bounded. Namespaces and object names are never labels, except of the runs whose signals were raised
    first.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._build = _BUILD.register(self.registry)
        self._leader = _LEADER.register(self.registry)
        self._standing_down = _STANDING_DOWN.register(self.registry)
        self._resource_missing = _RESOURCE_MISSING.register(self.registry)
        self._watch_lag = _WATCH_LAG.register(self.registry)
        self._captures = _CAPTURES.register(self.registry)
        self._duration = _DURATION.register(self.registry)
        self._start_delay = _START_DELAY.register(self.registry)
        self._start_skew = _START_SKEW.register(self.registry)
        self._targets = _TARGETS.register(self.registry)
        self._stored_bytes = _STORED_BYTES.register(self.registry)
        self._automatic = _AUTOMATIC.register(self.registry)
        self._queued = _QUEUED.register(self.registry)
        self._in_flight = _IN_FLIGHT.register(self.registry)
        self._status_writes = _STATUS_WRITES.register(self.registry)
        self.control_plane = ControlPlaneMetrics(self.registry)
        self.runs = RunMetrics(self.registry)
        self._work_failures = _WORK_FAILURES.register(self.registry)
        self._files_answered = _FILES_ANSWERED.register(self.registry)
        self._watches = _WATCHES.register(self.registry)

    def identify(self, *, version: str, cluster: str) -> Self:
        """Set the version of the operator and the name of the cluster."""
        self._build.info({"version": version, "cluster": cluster})
        return self

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

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


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
