from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_operator.runs.run import Run, run_manifest

STATUS = {"phase": "Active", "reason": "Running"}


def run_of(version: str, **changes: Any) -> Run:
    """Return a run as the API server delivers one version of it."""
    body = run_manifest("trainer", "ml", "id")
    body["metadata"] |= {"uid": "uid", "resourceVersion": version}
    return Run.of(body | changes)


@pytest.mark.parametrize(
    ("changes", "has_written"),
    [
        ({"status": STATUS}, True),
        ({"status": STATUS | {"reason": "Reporting"}}, False),
        ({}, False),
        ({"status": STATUS, "spec": {"runId": "id", "displayName": "a name"}}, False),
    ],
)
def test_a_version_that_arrives_before_the_answer_is_known_as_written_by_its_status(
    changes: dict[str, Any], *, has_written: bool
) -> None:
    run = run_of("1")
    run.written = MLRunStatus(phase=MLRunPhase.ACTIVE, reason="Running")
    assert run.has_written(run_of("2", **changes)) is has_written


@pytest.mark.parametrize(("kind", "api_version"), [("CronJob", "batch/v1"), ("RayCronJob", "ray.io/v1")])
def test_a_workload_that_only_groups_runs_has_no_state(kind: str, api_version: str) -> None:
    reference = {"apiVersion": api_version, "kind": kind, "name": "nightly"}
    run = run_of("1", spec={"runId": "id", "workloadRef": reference})
    facts = run.facts(None)
    assert (run.kind, facts.workload, facts.lifecycle, facts.endless) == (None, f"{kind}/nightly", None, False)
