"""What the operator counts: one registry of its own, one method per thing that happens."""

import sys
from typing import Final, Self

from mldiagnostics_kube import metrics
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

_CAPTURE_SECONDS: Final = (1, 2, 5, 10, 20, 40, 60, 90, 120, 180, 300, 600)
_DELAY_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SKEW_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class OperatorMetrics:
    """The metrics of one operator process; labels are bounded, namespaces and names are none."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        self._build = Info(
            "mldiagnostics_operator", "Version of the operator and name of the cluster.", registry=registry
        )
        self._leader = Gauge(
            "mldiagnostics_operator_leader", "1 while this replica holds the Lease.", registry=registry
        )
        self._standing_down = Gauge(
            "mldiagnostics_operator_standing_down",
            "1 while a managed add-on owns the resource and this operator captures nothing.",
            registry=registry,
        )
        self._watch_lag = Gauge(
            "mldiagnostics_watch_lag_seconds",
            "How long the oldest change has been in the API server without reaching this operator's watch.",
            registry=registry,
        )
        self._captures = Counter(
            "mldiagnostics_captures_total",
            "Captures that ended, by result and reason.",
            ("result", "reason"),
            registry=registry,
        )
        self._duration = Histogram(
            "mldiagnostics_capture_duration_seconds",
            "Time from a capture's start to its end, by result.",
            ("result",),
            buckets=_CAPTURE_SECONDS,
            registry=registry,
        )
        self._delay = Histogram(
            "mldiagnostics_capture_start_delay_seconds",
            "Time from a capture's creation to its first request to a profiler, queueing included.",
            buckets=_DELAY_SECONDS,
            registry=registry,
        )
        self._skew = Histogram(
            "mldiagnostics_capture_start_skew_seconds",
            "Time between the first and the last host's start within one capture.",
            buckets=_SKEW_SECONDS,
            registry=registry,
        )
        self._targets = Counter(
            "mldiagnostics_capture_targets_total",
            "Targets of captures, by state and reason.",
            ("state", "reason"),
            registry=registry,
        )
        self._bytes = Counter("mldiagnostics_trace_bytes_total", "Bytes of traces stored.", registry=registry)
        self._queued = Gauge("mldiagnostics_captures_queued", "Captures that wait for their turn.", registry=registry)
        self._in_flight = Gauge(
            "mldiagnostics_captures_in_flight", "Captures that run in this replica.", registry=registry
        )
        self._status_writes = Counter(
            "mldiagnostics_status_writes_total",
            "Writes of a capture's status, by result (written, gone, failed).",
            ("result",),
            registry=registry,
        )

    def identify(self, *, version: str, cluster: str) -> Self:
        """Say which version runs in which cluster."""
        self._build.info({"version": version, "cluster": cluster})
        return self

    def leading(self, *, leader: bool) -> None:
        """Note whether this replica leads."""
        self._leader.set(leader)

    def standing_down(self, *, aside: bool) -> None:
        """Note whether a managed add-on keeps this operator from capturing."""
        self._standing_down.set(aside)

    def watch_lag(self, seconds: float) -> None:
        """Note how far the watch is behind the API server."""
        self._watch_lag.set(seconds)

    def queue(self, *, queued: int, in_flight: int) -> None:
        """Note how many captures wait and how many run."""
        self._queued.set(queued)
        self._in_flight.set(in_flight)

    def capture_started(self, *, delay_s: float) -> None:
        """Count a capture's first request, `delay_s` after its creation."""
        self._delay.observe(max(delay_s, 0.0))

    def capture_ended(self, *, result: str, reason: str, duration_s: float | None = None) -> None:
        """Count a verdict; `duration_s` is None for captures that never ran."""
        self._captures.labels(result=result, reason=reason).inc()
        if duration_s is not None:
            self._duration.labels(result=result).observe(max(duration_s, 0.0))

    def target_ended(self, *, state: str, reason: str, stored_bytes: int = 0) -> None:
        """Count a target's outcome and what it left in the store."""
        self._targets.labels(state=state, reason=reason).inc()
        self._bytes.inc(stored_bytes)

    def start_skew(self, seconds: float) -> None:
        """Record how far apart the hosts of one capture started."""
        self._skew.observe(seconds)

    def status_written(self, result: str) -> None:
        """Count a status write: `written`, `gone` (the object was deleted) or `failed`."""
        self._status_writes.labels(result=result).inc()

    def exposition(self) -> bytes:
        """Render all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def reference() -> str:
    """Write the reference page of the metrics (Markdown)."""
    return metrics.reference(
        OperatorMetrics().registry,
        title="Metrics of the operator",
        module="mldiagnostics_operator.telemetry",
        notes="Served at `/metrics`, beside the\nusual `process_*`. "
        "Only the leader counts captures; reasons are those of a capture's status: few.",
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
