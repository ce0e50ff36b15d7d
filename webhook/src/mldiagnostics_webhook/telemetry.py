"""What the webhook counts: one registry of its own, one method per thing that happens."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final, Self

from mldiagnostics_kube import metrics
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

_REVIEW_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

LOOKUPS: Final = ("cache", "server", "nowhere", "forbidden", "failed")


class WebhookMetrics:
    """The metrics of one webhook process; labels are bounded, namespaces and names are none."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        self._build = Info(
            "mldiagnostics_webhook", "Version of the webhook and name of the cluster.", registry=registry
        )
        self._reviews = Counter(
            "mldiagnostics_webhook_reviews_total",
            "Requests for review, by result (injected, skipped, failed, unreadable, refused) and reason.",
            ("result", "reason"),
            registry=registry,
        )
        self._by_outcome: dict[tuple[str, str], Counter] = {}
        self._duration = Histogram(
            "mldiagnostics_webhook_review_duration_seconds",
            "Time from a review's last byte to its answer, lookups included.",
            buckets=_REVIEW_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "mldiagnostics_webhook_reviews_in_flight", "Reviews that are being read or answered.", registry=registry
        )
        lookups = Counter(
            "mldiagnostics_webhook_lookups_total",
            "Namespaces and owners that were looked up, by where they were found: cache (hits), server (misses), "
            "nowhere, or not: forbidden, failed.",
            ("found",),
            registry=registry,
        )
        self._lookups = {found: lookups.labels(found) for found in LOOKUPS}
        self._followed = Gauge(
            "mldiagnostics_webhook_watch",
            "1 for the state of the watch of each kind: unknown, followed, behind, absent or forbidden.",
            ("kind", "state"),
            registry=registry,
        )
        self._objects = Gauge(
            "mldiagnostics_webhook_cached_objects", "Objects of each kind in the cache.", ("kind",), registry=registry
        )
        self._left_out = Gauge(
            "mldiagnostics_webhook_cache_left_out",
            "Changes of each kind that found no room in the cache since the start; their objects are asked for.",
            ("kind",),
            registry=registry,
        )
        self._certificate_ends = Gauge(
            "mldiagnostics_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate that is served ends, in seconds since 1970; 0 while there is none.",
            registry=registry,
        )

    def identify(self, *, version: str, cluster: str) -> Self:
        """Say which version runs in which cluster."""
        self._build.info({"version": version, "cluster": cluster})
        return self

    def reviewed(self, *, result: str, reason: str) -> None:
        """Count an answer."""
        counter = self._by_outcome.get((result, reason))
        if counter is None:  # finding it takes longer than counting
            counter = self._by_outcome[result, reason] = self._reviews.labels(result, reason)
        counter.inc()

    def took(self, seconds: float) -> None:
        """Record how long an answer took."""
        self._duration.observe(seconds)

    def in_flight(self, reviews: Callable[[], int]) -> None:
        """Say where to read, at any time, how many reviews are under way."""
        self._in_flight.set_function(reviews)

    def looked_up(self, found: str, times: int = 1) -> None:
        """Count lookups: found in the `cache`, at the `server` or `nowhere`, `forbidden`, or `failed`."""
        self._lookups[found].inc(times)

    def watch(self, kind: str, *, before: str, now: str) -> None:
        """Note that the watch of a kind has gone from one state to another."""
        self._followed.labels(kind, before).set(0)
        self._followed.labels(kind, now).set(1)

    def kept(self, kind: str, *, objects: int, left_out: int) -> None:
        """Note what the cache has of a kind."""
        self._objects.labels(kind).set(objects)
        self._left_out.labels(kind).set(left_out)

    def certificate_ends(self, moment: Callable[[], datetime | None]) -> None:
        """Say where to read, at any time, when the certificate that is served ends; None while there is none."""

        def timestamp() -> float:
            end = moment()
            return end.timestamp() if end else 0.0

        self._certificate_ends.set_function(timestamp)

    def exposition(self) -> bytes:
        """Render all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def reference() -> str:
    """Write the reference page of the metrics (Markdown)."""
    return metrics.reference(
        WebhookMetrics().registry,
        title="Metrics of the webhook",
        module="mldiagnostics_webhook.telemetry",
        notes="Served at `/metrics`, beside the usual `process_*`. Every replica counts its own.",
    )


if __name__ == "__main__":
    sys.stdout.write(reference())
