"""Every alert of the charts by Prometheus' own promtool: situations that raise it, and similar ones that do not.

Needs promtool on the PATH; conftest.py leaves this file out of a run of all tests on other machines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import rendered
from support.cluster.charts import one

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not on the PATH")

NAMESPACE = "ml-system"
ON = {"metrics.prometheusRule.enabled": True}
each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)


@dataclass(frozen=True, slots=True)
class Case:
    """Series of one value a minute in promtool's notation, and whether they raise an alert."""

    alert: str
    series: Mapping[str, str]
    at: str
    """Time of the question since the start of the series."""
    labels: Mapping[str, str] | None = field(default_factory=dict)
    """Labels of the alert beside its severity; None: it is not raised."""


def source(part: Part) -> dict[str, str]:
    """Return the labels that a scrape adds to every series of a release."""
    return {"namespace": NAMESPACE, "job": f"{part.name}-metrics"}


def captures(result: str, reason: str) -> str:
    return f'mldiagnostics_captures_total{{result="{result}",reason="{reason}"}}'


def automatic(result: str, cause: str) -> str:
    return f'mldiagnostics_automatic_captures_total{{result="{result}",cause="{cause}"}}'


def journal(result: str) -> str:
    return f'mldiagnostics_control_plane_journal_writes_total{{result="{result}"}}'


def signal(name: str) -> dict[str, str]:
    return {f'mldiagnostics_run_signal{{run_namespace="ml",run="trainer",signal="{name}"}}': "0x9 1x60"}


def reviews(result: str) -> str:
    return f'mldiagnostics_webhook_reviews_total{{result="{result}",reason="r"}}'


def durations(below_1s: str, all_of_them: str) -> dict[str, str]:
    bucket = "mldiagnostics_webhook_review_duration_seconds_bucket"
    return {
        f'{bucket}{{le="1"}}': below_1s,
        f'{bucket}{{le="2.5"}}': all_of_them,
        f'{bucket}{{le="+Inf"}}': all_of_them,
    }


LEADER = "mldiagnostics_operator_leader"
EXPIRY = "mldiagnostics_webhook_certificate_expiry_timestamp_seconds"
DAY_S = 86400
RUN = {"run_namespace": "ml", "run": "trainer"}
CASES = {
    OPERATOR.name: (
        Case("OperatorNotLeading", {f'{LEADER}{{pod="a"}}': "1x5 0x30", f'{LEADER}{{pod="b"}}': "0x35"}, "12m"),
        Case("OperatorNotLeading", {}, "6m"),
        Case("OperatorNotLeading", {f'{LEADER}{{pod="a"}}': "0x30", f'{LEADER}{{pod="b"}}': "1x30"}, "20m", None),
        Case("OperatorNotLeading", {LEADER: "0x30", "mldiagnostics_operator_standing_down": "1x30"}, "12m", None),
        Case("OperatorNotLeading", {LEADER: "0x30", "mldiagnostics_operator_standing_down": "0x30"}, "12m"),
        Case("ResourceMissing", {"mldiagnostics_operator_resource_missing": "1x30"}, "16m"),
        Case("ResourceMissing", {"mldiagnostics_runs_resource_missing": "1x30"}, "16m"),
        Case("ResourceMissing", {"mldiagnostics_runs_resource_missing": "1x5 0x30"}, "16m", None),
        Case("CapturesFailing", {captures("failed", "Unreachable"): "0+1x90"}, "1h"),
        Case("CapturesFailing", {captures("failed", "Unreachable"): "0 1 2x90"}, "1h", None),
        Case("CapturesFailing", {captures("failed", "Cancelled"): "0+1x90"}, "1h", None),
        Case(
            "CapturesFailing",
            {captures("failed", "Unreachable"): "0+1x90", captures("succeeded", "Captured"): "0+2x90"},
            "1h",
            None,
        ),
        Case("TriggersRefused", {automatic("refused", "Captures"): "0+1x400"}, "6h"),
        Case("TriggersRefused", {automatic("refused", "Captures"): "0 1 2 3x400"}, "6h", None),
        Case(
            "TriggersRefused",
            {automatic("refused", "Captures"): "0+1x400", automatic("created", "Slot"): "0+1x400"},
            "6h",
            None,
        ),
        Case("StatusWritesFailing", {'mldiagnostics_status_writes_total{result="failed"}': "0+1x60"}, "30m"),
        Case("StatusWritesFailing", {'mldiagnostics_run_status_writes_total{result="failed"}': "0+1x60"}, "30m"),
        Case("StatusWritesFailing", {'mldiagnostics_status_writes_total{result="written"}': "0+9x60"}, "30m", None),
        Case("WatchBehind", {'mldiagnostics_watch_lag_seconds{pod="a"}': "90x30"}, "15m"),
        Case("WatchBehind", {'mldiagnostics_watch_lag_seconds{pod="a"}': "50x30"}, "15m", None),
        Case("ReportsNotPersisted", {journal("failed"): "0+2x60", journal("written"): "0+1x60"}, "40m"),
        Case("ReportsNotPersisted", {journal("failed"): "0+2x60"}, "40m"),
        Case("ReportsNotPersisted", {journal("failed"): "0+1x60", journal("written"): "0+2x60"}, "40m", None),
        Case("WorkFailing", {'mldiagnostics_work_failures_total{work="runs"}': "0+1x60"}, "30m", {"work": "runs"}),
        Case("WorkFailing", {'mldiagnostics_work_failures_total{work="runs"}': "0 1x60"}, "30m", None),
        Case("RunGoodputLow", signal("GoodputLow"), "26m", RUN),
        Case("RunGoodputLow", signal("GoodputLow"), "20m", None),
        Case("RunHostsSilent", signal("HostsSilent"), "16m", RUN),
        Case("RunHostsSilent", signal("Hanging"), "16m", None),
        Case("RunHanging", signal("Hanging"), "16m", RUN),
        Case("RunHanging", signal("GoodputLow"), "16m", None),
    ),
    WEBHOOK.name: (
        Case("WebhookDown", {"mldiagnostics_webhook_info": "1x5 stale"}, "12m", source(WEBHOOK)),
        Case("WebhookDown", {"mldiagnostics_webhook_info": "1x30"}, "20m", None),
        Case("WebhookFailing", {reviews("failed"): "0+1x60", reviews("injected"): "0+9x60"}, "30m"),
        Case("WebhookFailing", {reviews("unreadable"): "0+1x60"}, "30m"),
        Case("WebhookFailing", {reviews("failed"): "0+1x60", reviews("injected"): "0+99x60"}, "30m", None),
        Case("WebhookFailing", {reviews("failed"): "0 1 2x60"}, "30m", None),
        Case("WebhookSlow", durations("0+9x60", "0+10x60"), "40m"),
        Case("WebhookSlow", durations("0+10x60", "0+10x60"), "40m", None),
        Case("CertificateNearItsEnd", {f'{EXPIRY}{{pod="a"}}': "0x90"}, "70m"),
        Case("CertificateNearItsEnd", {f'{EXPIRY}{{pod="a"}}': f"{6 * DAY_S}x90"}, "70m"),
        Case("CertificateNearItsEnd", {f'{EXPIRY}{{pod="a"}}': f"{30 * DAY_S}x90"}, "70m", None),
    ),
}


@each_part
def test_alerts_are_raised_when_they_should_be_and_only_then(part: Part, tmp_path: Path) -> None:
    objects = rendered(part, ON, namespace=NAMESPACE)
    groups: dict[str, Any] = one(objects, "PrometheusRule", part.name)["spec"]
    rules = {rule["alert"].removeprefix("MLDiagnostics"): rule for rule in groups["groups"][0]["rules"]}
    assert {case.alert for case in CASES[part.name] if case.labels is not None} == rules.keys()
    assert {case.alert for case in CASES[part.name] if case.labels is None} == rules.keys()
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    tests = [question(case, rules[case.alert], part) for case in CASES[part.name]]
    (tmp_path / "cases.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
    )
    promtool("check", "rules", "--lint-fatal", tmp_path / "rules.yaml")
    promtool("test", "rules", tmp_path / "cases.yaml")


def question(case: Case, rule: dict[str, Any], part: Part) -> dict[str, Any]:
    """Return a test of promtool."""
    raised = []
    if case.labels is not None:
        labels = {**rule["labels"], **case.labels}
        annotations = {name: shown(text, labels) for name, text in rule["annotations"].items()}
        raised = [{"exp_labels": labels, "exp_annotations": annotations}]
    return {
        "name": f"{case.alert}: {dict(case.series)}",
        "interval": "1m",
        "input_series": [{"series": scraped(name, part), "values": values} for name, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": rule["alert"], "exp_alerts": raised}],
    }


def scraped(series: str, part: Part) -> str:
    """Return a series with the labels that a scrape adds."""
    name, _, labels = series.rstrip("}").partition("{")
    added = [f'{label}="{value}"' for label, value in source(part).items()]
    return f"{name}{{{','.join(filter(None, [labels, *added]))}}}"


def shown(text: str, labels: Mapping[str, str]) -> str:
    """Return an annotation as Prometheus renders it."""
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda match: labels[match[1]], text)


def promtool(*arguments: str | Path) -> None:
    """Run promtool; fail with its output."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
