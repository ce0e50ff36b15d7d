"""Metrics and alerts that the page about dashboards names: the processes and the charts have them."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import yaml
from support.programs.documents import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/dashboards.md").read_text()
REFERENCE = "".join(
    (ROOT / f"docs/reference/{name}.md").read_text()
    for name in ("goodput-metrics", "metrics", "sinks", "webhook-metrics")
)


def test_every_metric_of_the_page_is_documented() -> None:
    named = set(re.findall(r"\b(?:ml|mldiagnostics)_[a-z_]+", PAGE)) - {"ml_diagnostics_metric"}
    assert {"ml_goodput_percent", "mldiagnostics_step", "mldiagnostics_runs_time_seconds"} <= named
    of_programs = {"ml_loss"}
    unknown = {name for name in named - of_programs if f"`{name.removeprefix('ml_')}`" not in REFERENCE}
    assert unknown == set()


def test_every_alert_of_the_page_is_in_a_chart() -> None:
    rules = [rule for path in ROOT.glob("charts/*/files/alerts.yaml") for rule in yaml.safe_load(path.read_text())]
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in rules}
    rows = re.findall(r"^\| `(MLDiagnostics\w+)` \| (\w+) \|", PAGE, re.MULTILINE)
    assert len(rows) > 3
    assert dict(rows).items() <= severities.items()


def test_the_rules_of_the_page_are_valid() -> None:
    [rules] = [yaml.safe_load(block.text) for block in blocks(PAGE) if block.title == "rules.yaml"]
    expressions = [rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert expressions
    for expression in expressions:
        promql_parser.parse(expression)
