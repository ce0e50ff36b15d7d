"""The states of workloads as their real controllers report them, and the runs that follow from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from mldiagnostics_api.lifecycle import Lifecycle, lifecycle
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.status import fold
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_api.workloads.kinds import workload_of
from support.cluster.recorded_runs import recorded

START = datetime(2026, 11, 22, 22, 0, tzinfo=UTC)


def states(title: str) -> list[Lifecycle]:
    """Return the states of a recorded workload."""
    decisions = []
    for item in recorded(title):
        kind = workload_of(item["kind"], item["apiVersion"])
        assert kind is not None
        decisions.append(lifecycle(kind, item))
    return decisions


def history(title: str) -> list[MLRunStatus]:
    """Return the statuses of the run of a recorded workload, one for each of its states."""
    statuses, status = [], MLRunStatus()
    for second, state in enumerate(states(title)):
        facts = RunFacts(run_id="a" * 64, workload=title, lifecycle=state)
        status = fold(status, facts, START + timedelta(seconds=second))
        statuses.append(status)
    return statuses


@pytest.mark.parametrize(
    ("title", "phases", "attempts", "reason"),
    [
        ("jobset-completes", ["Pending", "Active", "Completed"], [0], "AllJobsCompleted"),
        ("jobset-restarts", ["Pending", "Active", "Failed"], [0, 1], "ReachedMaxRestarts"),
        ("jobset-suspended", ["Pending", "Active", "Pending"], [0], "Suspended"),
        ("jobset-refused", ["Pending"], [], "Starting"),
        ("job-retries", ["Pending", "Active", "Failed"], [0, 1], "BackoffLimitExceeded"),
        ("job-exceeds", ["Pending", "Active", "Failed"], [0], "BackoffLimitExceeded"),
        ("job-evicted", ["Pending", "Active"], [0, 1], "PodsFailed"),
        ("job-preempted", ["Pending", "Active"], [0, 1], "PodsFailed"),  # preempted before it was ready
        ("leaderworkerset-serves", ["Pending", "Active"], [0], "Running"),
    ],
)
def test_a_run_follows_what_its_real_controller_reports(
    title: str, phases: list[str], attempts: list[int], reason: str
) -> None:
    statuses = history(title)
    seen = [str(status.phase) for status in statuses]
    assert [phase for place, phase in enumerate(seen) if seen[place - 1 : place] != [phase]] == phases
    last = statuses[-1]
    assert [attempt.attempt for attempt in last.attempts or ()] == attempts
    assert last.reason == reason
    assert (last.completion_time is not None) == (phases[-1] in ("Completed", "Failed"))


def test_hosts_are_counted_by_the_spec() -> None:
    hosts = {title: states(title)[-1].hosts for title in ("jobset-completes", "leaderworkerset-serves", "job-retries")}
    assert hosts == {"jobset-completes": 2, "leaderworkerset-serves": 2, "job-retries": 1}


def test_a_job_that_fails_replaces_its_last_pod_no_more() -> None:
    job = workload_of("Job")
    assert job is not None
    limit = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "has reached it"}
    ending = {"failed": 1, "conditions": [limit]}
    ended = {"failed": 1, "conditions": [limit, {**limit, "type": "Failed"}]}
    for status, phase in ((ending, MLRunPhase.ACTIVE), (ended, MLRunPhase.FAILED)):
        state = lifecycle(job, {"spec": {}, "status": status})
        assert (state.phase, state.attempt, state.reason) == (phase, 0, "BackoffLimitExceeded")
