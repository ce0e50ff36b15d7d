"""States of a Job and its pods, as the kubelet and the Job's controller write them."""

from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_operator.diagnoses.job_state import blocked, has_ended, loss, never_started

DEADLINE = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active too long"}


def pod(**state: Any) -> dict[str, Any]:
    return {"status": {"containerStatuses": [{"name": "diagnosis", "state": state}]}}


@pytest.mark.parametrize(
    ("status", "ended", "waits"),
    [
        (None, False, True),
        ({"active": 1, "ready": 0}, False, True),
        ({"active": 1, "ready": 1}, False, False),
        ({"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}, True, False),
        ({"conditions": [{"type": "FailureTarget", "status": "True"}], "failed": 1}, True, False),
        ({"conditions": [{"type": "Complete", "status": "False"}], "active": 1}, False, True),
    ],
)
def test_a_job_waits_runs_and_ends(status: Any, ended: bool, waits: bool) -> None:
    job = {"status": status}
    assert (has_ended(job), never_started(job)) == (ended, waits)


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ([], None),
        ([{"status": {}}], None),
        ([pod(waiting={"reason": "ContainerCreating"})], None),
        ([pod(running={"startedAt": "2026-11-23T10:00:00Z"})], None),
        ([pod(waiting={"reason": "ErrImagePull", "message": "not found"})], "ErrImagePull: not found"),
        ([pod(waiting={"reason": "InvalidImageName"})], "InvalidImageName"),
    ],
)
def test_a_container_that_cannot_start_blocks_its_job(pods: list[dict[str, Any]], message: str | None) -> None:
    assert blocked(pods) == message


@pytest.mark.parametrize(
    ("status", "pods", "message"),
    [
        ({"conditions": [{"type": "Complete", "status": "True"}]}, [pod(terminated={"exitCode": 0})], ""),
        ({"conditions": [DEADLINE]}, [], "DeadlineExceeded: Job was active too long"),
        (
            {"conditions": [DEADLINE]},
            [pod(terminated={"exitCode": 137, "reason": "OOMKilled"})],
            "OOMKilled: its container ended with code 137",
        ),
        (
            {"conditions": [DEADLINE]},
            [
                pod(
                    terminated={
                        "exitCode": 1,
                        "reason": "Error",
                        "message": '{"version": 1}\n/traces: the disk is full\n',
                    }
                )
            ],
            "Error: its container ended with code 1: /traces: the disk is full",
        ),
    ],
)
def test_a_lost_result_is_explained_by_its_container_or_its_job(
    status: dict[str, Any], pods: list[dict[str, Any]], message: str
) -> None:
    assert loss({"status": status}, pods) == message
