"""Metrics of the webhook: one declaration per metric, one method per event."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final

from mldiagnostics_kube.process import metrics
from mldiagnostics_kube.process.metrics import MetricSpec, ProcessMetrics
from prometheus_client import Counter, Gauge, Histogram, Info

LOOKUPS: Final = ("cache", "server", "nowhere", "forbidden", "failed")


class WebhookMetrics(ProcessMetrics):
    """Metrics of one process.

    Label values are bounded; namespaces and object names are never labels.
    """

    _build = MetricSpec(Info, "mldiagnostics_webhook", "Version of the webhook and name of the cluster.")
    _reviews = MetricSpec(
        Counter,
        "mldiagnostics_webhook_reviews_total",
        "Reviews by result (injected, skipped, failed, unreadable, refused) and reason.",
        ("result", "reason"),
    )
    _duration = MetricSpec(
        Histogram,
        "mldiagnostics_webhook_review_duration_seconds",
        "Time from the last byte of a review to its answer, lookups included.",
        buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
    )
    _in_flight = MetricSpec(
        Gauge, "mldiagnostics_webhook_reviews_in_flight", "Reviews that are being read or answered."
    )
    _closed = MetricSpec(
        Counter,
        "mldiagnostics_webhook_connections_closed_total",
        "Connections that the webhook closed: TooMany (for a newer one, or refused) or TimedOut (no request in time).",
        ("reason",),
    )
    _lookups = MetricSpec(
        Counter,
        "mldiagnostics_webhook_lookups_total",
        "Lookups of namespaces and owners by outcome: cache (hit), server (miss), nowhere (no such object), forbidden, "
        "failed.",
        ("found",),
    )
    _watches = MetricSpec(
        Gauge,
        "mldiagnostics_webhook_watch",
        "1 for the current state of each kind's watch: unknown, followed, behind, absent or forbidden.",
        ("kind", "state"),
    )
    _objects = MetricSpec(
        Gauge, "mldiagnostics_webhook_cached_objects", "Objects of each kind in the cache.", ("kind",)
    )
    _left_out = MetricSpec(
        Gauge,
        "mldiagnostics_webhook_cache_left_out",
        "Changes of each kind since the start that did not fit into the cache; their objects are read on demand.",
        ("kind",),
    )
    _certificate_expiry = MetricSpec(
        Gauge,
        "mldiagnostics_webhook_certificate_expiry_timestamp_seconds",
        "Expiry of the serving certificate in seconds since 1970; 0 without a certificate.",
    )

    def __init__(self) -> None:
        super().__init__()
        self._by_outcome: dict[tuple[str, str], Counter] = {}
        self._by_lookup = {outcome: self._lookups.labels(outcome) for outcome in LOOKUPS}

    def reviewed(self, *, result: str, reason: str) -> None:
        """Count an answer."""
        counter = self._by_outcome.get((result, reason))
        if counter is None:  # `labels` costs more than `inc`
            counter = self._by_outcome[result, reason] = self._reviews.labels(result, reason)
        counter.inc()

    def took(self, seconds: float) -> None:
        """Record the duration of an answer."""
        self._duration.observe(seconds)

    def in_flight(self, reviews: Callable[[], int]) -> None:
        """Set the function that returns the number of reviews in flight."""
        self._in_flight.set_function(reviews)

    def closed(self, reason: str) -> None:
        """Count a connection that the server closed."""
        self._closed.labels(reason).inc()

    def looked_up(self, outcome: str, times: int = 1) -> None:
        """Count lookups with one of the outcomes `LOOKUPS`."""
        self._by_lookup[outcome].inc(times)

    def watch(self, kind: str, *, before: str, now: str) -> None:
        """Record that the watch of a kind changed its state."""
        self._watches.labels(kind, before).set(0)
        self._watches.labels(kind, now).set(1)

    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        """Record the size of the cache for a kind."""
        self._objects.labels(kind).set(objects)
        self._left_out.labels(kind).set(left_out)

    def certificate_ends(self, moment: Callable[[], datetime | None]) -> None:
        """Set the function that returns the expiry of the serving certificate, or None."""

        def timestamp() -> float:
            end = moment()
            return end.timestamp() if end else 0.0

        self._certificate_expiry.set_function(timestamp)


def reference() -> str:
    """Write the reference page of the metrics (Markdown)."""
    return metrics.reference(
        WebhookMetrics().registry,
        title="Metrics of the webhook",
        module="mldiagnostics_webhook.telemetry",
        notes="Served at `/metrics`, together with the usual `process_*`. Each replica counts only its own events.",
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
