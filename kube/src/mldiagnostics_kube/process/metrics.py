"""Declarations of metrics, and the reference page made of a process's metrics."""

from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from prometheus_client import CollectorRegistry, Info, ProcessCollector, generate_latest
from prometheus_client.metrics import MetricWrapperBase

M = TypeVar("M", bound=MetricWrapperBase)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}


@dataclass(frozen=True, slots=True)
class MetricSpec(Generic[M]):
    """Declaration of a metric, for `/metrics` and the reference page.

    Example:
        class WebhookMetrics(ProcessMetrics):
            _reviews = MetricSpec(Counter, "mldiagnostics_webhook_reviews_total", "Reviews by result.", ("result",))

            def reviewed(self, result: str) -> None:
                self._reviews.labels(result).inc()
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

    def __get__(self, instance: object, owner: object) -> M:
        raise AttributeError(f"{self.name}: not registered")  # the metric itself hides this in `Metrics`


class Metrics:
    """Metrics in a registry: one for each `MetricSpec` of the class, by its name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        specs = {name: each for name, each in vars(type(self)).items() if isinstance(each, MetricSpec)}
        vars(self).update({name: spec.register(registry) for name, spec in specs.items()})


class ProcessMetrics(Metrics):
    """Metrics of a process, in a registry of their own."""

    _build: MetricSpec[Info]

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        super().__init__(self.registry)

    def identify(self, *, version: str, cluster: str) -> Self:
        """Set the version of the process and the name of the cluster."""
        self._build.info({"version": version, "cluster": cluster})
        return self

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


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
