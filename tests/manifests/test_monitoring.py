"""Alerts and dashboards of the charts: PromQL over metrics and labels that the processes really have."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
from mldiagnostics.goodput.exports.metrics import METRICS as GOODPUT_METRICS
from mldiagnostics.metric_types import NO_UNIT, UNITS, MetricType
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks.prometheus import SeriesTable
from mldiagnostics_kube.process.metrics import MetricSpec
from mldiagnostics_operator.control_plane.telemetry import ControlPlaneMetrics
from mldiagnostics_operator.runs.telemetry import RunMetrics
from mldiagnostics_operator.telemetry import OperatorMetrics
from mldiagnostics_webhook.telemetry import WebhookMetrics
from prometheus_client import CollectorRegistry, Histogram, Info
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import Object, rendered
from support.cluster.charts import one
from support.records import origin

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)
ON = {"metrics.prometheusRule.enabled": True, "metrics.dashboards.enabled": True}
METRICS = {OPERATOR.name: (OperatorMetrics, ControlPlaneMetrics, RunMetrics), WEBHOOK.name: (WebhookMetrics,)}
OF_PROCESSES = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
OF_TARGETS = {"namespace", "job", "pod", "instance"}
"""Labels that a ServiceMonitor adds to every series."""
VARIABLES = {"$__rate_interval": "5m", "$__range": "6h", "$namespace": "ml", "$name": "resnet"}
"""Values that Grafana puts into queries."""


def series_of_sdk() -> dict[str, set[str]]:
    """Return the labels of the series that the SDK's sink for Prometheus has of its known metrics."""
    labels = {metric.name: metric.labels for metric in GOODPUT_METRICS} | {metric.value: () for metric in MetricType}
    table = SeriesTable(origin())
    records = [
        Record("metric", 1.0, name, 1.0, step=1, unit=UNITS.get(name, NO_UNIT), labels=dict.fromkeys(names, "x"))
        for name, names in labels.items()
    ]
    table.update([*records, Record("drop", 1.0, "full", 1.0, labels={"sink": "otlp"})])
    return {sample.name: set(sample.labels) for family in table.collect() for sample in family.samples}


def series(part: Part) -> dict[str, set[str]]:
    """Return the labels of every series that a process of the part has, by name."""
    labels_by_name: dict[str, set[str]] = {}
    for spec in (
        item for metrics in METRICS[part.name] for item in vars(metrics).values() if isinstance(item, MetricSpec)
    ):
        labels = set(spec.labels)
        if spec.type is Histogram:
            labels_by_name |= {
                f"{spec.name}_bucket": labels | {"le"},
                f"{spec.name}_count": labels,
                f"{spec.name}_sum": labels,
            }
        elif spec.type is Info:
            labels_by_name[f"{spec.name}_info"] = {"version", "cluster"}
        else:
            labels_by_name[spec.name] = labels
    of_runs = series_of_sdk() if part is OPERATOR else {}
    return labels_by_name | of_runs | {name: set() for name in OF_PROCESSES}


def selectors(node: Any) -> Iterator[Any]:
    """Yield every vector selector of an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "args"):
        child = getattr(node, name, None)
        for item in child if isinstance(child, list) else [child]:
            if item is not None:
                yield from selectors(item)


def groupings(expression: str) -> set[str]:
    """Return the labels by which an expression groups."""
    return {label.strip() for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in labels.split(",")}


def checked(expression: str, part: Part) -> list[Any]:
    """Return the selectors of an expression; assert that they match series of the part."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    known, selected = series(part), list(selectors(promql_parser.parse(expression)))
    assert selected, expression
    for selector in selected:
        assert selector.name in known, f"{selector.name} in {expression}"
        labels = {matcher.name for matcher in selector.matchers.matchers}
        assert labels <= known[selector.name] | OF_TARGETS, expression
    assert groupings(expression) <= OF_TARGETS.union(*(known[selector.name] for selector in selected)), expression
    return selected


def alerts(objects: list[Object], part: Part) -> list[Object]:
    (group,) = one(objects, "PrometheusRule", part.name)["spec"]["groups"]
    return group["rules"]


def dashboards(objects: list[Object], labels: Object) -> dict[str, Object]:
    maps = [
        item for item in objects if item["kind"] == "ConfigMap" and labels.items() <= item["metadata"]["labels"].items()
    ]
    return {name: json.loads(text) for item in maps for name, text in item["data"].items()}


@each_part
def test_nothing_for_prometheus_and_grafana_is_created_by_default(part: Part) -> None:
    objects = rendered(part)
    assert "PrometheusRule" not in {item["kind"] for item in objects}
    assert dashboards(objects, {"grafana_dashboard": "1"}) == {}


@each_part
def test_alerts_read_the_series_of_this_release(part: Part) -> None:
    objects = rendered(part, ON | {"metrics.prometheusRule.labels": {"release": "prom"}}, namespace="ml")
    service = one(objects, "Service", f"{part.name}-metrics")["metadata"]
    assert one(objects, "PrometheusRule", part.name)["metadata"]["labels"]["release"] == "prom"
    for rule in alerts(objects, part):
        for selector in checked(rule["expr"], part):
            values = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
            assert (values["namespace"], values["job"]) == (service["namespace"], service["name"])


@each_part
def test_every_alert_says_what_is_wrong_and_what_to_do(part: Part) -> None:
    rules = alerts(rendered(part, ON), part)
    assert len({rule["alert"] for rule in rules}) == len(rules) > 0
    for rule in rules:
        assert rule["alert"].startswith("MLDiagnostics")
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert all(rule["annotations"][key].endswith(".") for key in ("summary", "description"))
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert used <= groupings(rule["expr"])


@each_part
def test_dashboards_ask_for_series_that_exist(part: Part) -> None:
    by_name = dashboards(rendered(part, ON | {"metrics.dashboards.labels": {"folder": "ml"}}), {"folder": "ml"})
    assert by_name
    for name, dashboard in by_name.items():
        assert name == dashboard["uid"].removeprefix("mldiagnostics-") + ".json"
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                known = {
                    label for item in checked(target["expr"], part) for label in series(part)[item.name]
                } | OF_TARGETS
                assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known


@each_part
def test_every_metric_of_the_list_is_registered(part: Part) -> None:
    """The list above is read from the classes; a registry of the process proves that it is whole."""
    registry: CollectorRegistry = METRICS[part.name][0]().registry
    registered = {sample for metric in registry.collect() for sample in {item.name for item in metric.samples}}
    unlabelled = {name for name, labels in series(part).items() if not labels} - series_of_sdk().keys()
    assert unlabelled <= registered
