from __future__ import annotations

from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.manifests.reference import reference_page
from mldiagnostics_api.resources import CONNECTIONS


def test_every_field_has_a_row_and_every_rule_a_line() -> None:
    page = reference_page(definition_of(CONNECTIONS))
    assert "| `spec.triggerCapture.target.selector.matchExpressions[].key` | string |" in page
    assert "| `spec.triggerCapture.capturePort` | integer ≥ 1, ≤ 65535 |" in page
    assert "| `status.results[].startTime` | date-time |" in page
    assert "Rule: set exactly one of podName and target." in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert all(row.count(" | ") == 2 for row in rows)
    assert len(rows) == len(set(rows))
