"""Declarations of metrics, and the reference page made of a process's metrics."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

M = TypeVar("M", bound=MetricWrapperBase)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}


@dataclass(frozen=True, slots=True)
class MetricSpec(Generic[M]):
    """Declaration of a metric, for `/metrics` and the reference page.

    Example:
        REVIEWS = MetricSpec(Counter, "mldiagnostics_webhook_reviews_total", "Reviews by result.", ("result",))
        reviews = REVIEWS.register(registry)
        reviews.labels("injected").inc()
    """

    type: type[M]
    """Counter, Gauge, Histogram or Info."""
    name: str
    help: str
    """One sentence for the reference page; it names the unit and the values of labels."""
    labels: tuple[str, ...] = ()
    """Names of labels, whose values must be few: never names of objects."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets."""

    def register(self, registry: CollectorRegistry) -> M:
        """Create the metric in a registry."""
        options: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        return self.type(self.name, self.help, self.labels, registry=registry, **options)


def reference(registry: CollectorRegistry, *, title: str, module: str, notes: str) -> str:
    """Return the reference page as Markdown; `notes` follow the first sentence."""
    rows = [
        f"| `{metric.name}{_SUFFIXES.get(metric.type, '')}` | {metric.type} | {metric.documentation} |"
        for metric in sorted(registry.collect(), key=lambda metric: metric.name)
        if metric.name.startswith("mldiagnostics_")
    ]
    return "\n".join(
        [
            f"# {title}",
            "",
            f"Written by `python -m {module}`; do not edit. {notes}",
            "",
            "| metric | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
