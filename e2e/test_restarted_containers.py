"""Containers that the kubelet restarts in place, and replicas without ranks: their attempts, causes and counts."""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import injection_workloads as make
import pytest
from cluster.progress import ClusterError
from demo.kubectl import eventually
from injection_scene import OPTED_IN, Object, placed, pods_of, temporary_namespace
from run_scene import DEADLINE_S, Runs, in_attempt, phase
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.provider import Provider
    from demo.kubectl import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-restarts-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"


def job_that_is_restarted() -> Object:
    """Return a Job of one pod, whose container ends on request; the kubelet restarts it."""
    job = make.job("retries", labels=OPTED_IN)
    pod = make.pod_spec(restart="OnFailure", command=["sh", "-c", make.ENDS_ON_REQUEST])
    job["spec"] = {"backoffLimit": 4, "template": {"spec": pod}}
    return job


def deployment(name: str, replicas: int, **container: Any) -> Object:
    """Return a Deployment whose pods have these fields in their container."""
    manifest = make.deployment(name, labels=OPTED_IN)
    manifest["spec"]["replicas"] = replicas
    manifest["spec"]["template"]["spec"] = make.pod_spec(restart="Always", **container)
    return manifest


WORKLOADS = {
    "Job/retries": job_that_is_restarted(),
    "Deployment/crashes": deployment("crashes", 1, command=["sh", "-c", "exit 7"]),
    "Deployment/serves": deployment("serves", 2),
}


@pytest.fixture(scope="module")
def runs(running_cluster: Provider, kubectl: Kubectl, operator: None, webhook: None) -> Iterator[Runs]:  # noqa: ARG001 - must exist
    """Create all workloads at once: some work while the tests check others."""
    make.load_peers_image(running_cluster)
    with temporary_namespace(kubectl, NAMESPACE, {}):
        for manifest in WORKLOADS.values():
            kubectl.apply(placed(manifest, NAMESPACE))
        yield Runs(kubectl, NAMESPACE)


@pytest.fixture
def mldiag(kubectl: Kubectl, tmp_path: Path) -> CommandLine:
    """The command line with the administrator's kubeconfig."""
    return CommandLine(tmp_path, env={"KUBECONFIG": str(kubectl.kubeconfig)})


def test_a_deployment_whose_replica_is_replaced_has_hosts_and_no_account(
    runs: Runs, kubectl: Kubectl, mldiag: CommandLine
) -> None:
    run = runs.until("Deployment/serves", phase("Active"))
    [first, _] = pods_of(kubectl, NAMESPACE, "serves", count=2)
    kubectl("delete", "pod", first["metadata"]["name"], HERE, "--wait=false")

    def replaced() -> bool:
        names = {pod["metadata"]["name"] for pod in kubectl.items("pods", HERE, "--selector=app=serves")}
        return first["metadata"]["name"] not in names and len(names) == 2

    eventually(replaced, "the other pod of the Deployment", deadline_s=DEADLINE_S)
    kubectl("rollout", "status", "deployment/serves", HERE, f"--timeout={DEADLINE_S}s", timeout_s=DEADLINE_S + 10)
    kubectl("annotate", "deployment/serves", HERE, "example.com/seen=true")
    run = runs.until("Deployment/serves", phase("Active"))
    status = run["status"]
    assert status["independent"] is True
    assert [attempt["attempt"] for attempt in status["attempts"]] == [0]
    assert [status.get(name) for name in ("progress", "goodput", "findings")] == [None, None, None], status
    shown = mldiag.document("runs", "get", run["metadata"]["name"], HERE)
    assert (shown["phase"], shown["goodput"], shown["progress"]["step"]) == ("Active", None, None)
    refused = mldiag.failure("goodput", run["metadata"]["name"], HERE)
    assert "no rank leads its processes" in refused


def test_a_container_in_a_crash_loop_is_the_reason_of_its_run(runs: Runs, kubectl: Kubectl) -> None:
    run = runs.until("Deployment/crashes", lambda status: status.get("reason") == "CrashLoopBackOff")
    assert run["status"]["phase"] == "Active"
    [pod] = pods_of(kubectl, NAMESPACE, "crashes", count=1)
    assert f"of pod '{pod['metadata']['name']}' ended with exit code 7" in run["status"]["message"]
    assert run["status"]["hosts"]["restarts"] >= 1
    [event, *_] = [each for each in runs.story(run, last="CrashLoopBackOff") if each["reason"] == "CrashLoopBackOff"]
    assert event["type"] == "Warning"
    assert "exit code 7" in event["message"]


def test_restarts_of_a_container_are_attempts_with_their_causes(
    runs: Runs, kubectl: Kubectl, mldiag: CommandLine
) -> None:
    [pod] = pods_of(kubectl, NAMESPACE, "retries", count=1)

    def ended(code: int) -> bool:
        with suppress(ClusterError):  # the container starts
            kubectl("exec", pod["metadata"]["name"], HERE, "--", *make.end_with(code))
            return True
        return False

    for attempt, code in enumerate((3, 3, 0)):
        runs.until("Job/retries", in_attempt(attempt, "Active"))
        eventually(partial(ended, code), f"the end of the container with code {code}", deadline_s=DEADLINE_S)
    run = runs.until("Job/retries", phase("Completed"))
    attempts = run["status"]["attempts"]
    expected = [(0, "ExitCode"), (1, "ExitCode"), (2, None)]
    assert [(each["attempt"], each.get("cause")) for each in attempts] == expected
    assert all("exit code 3" in each["causeMessage"] for each in attempts[:2])
    ends, starts = [each["endTime"] for each in attempts], [each["startTime"] for each in attempts]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)), attempts
    reasons = [event["reason"] for event in runs.story(run, last="Completed")]
    assert reasons.count("Restarted") == 2
    shown = mldiag.document("runs", "get", run["metadata"]["name"], HERE)
    assert [(each["attempt"], each["cause"]) for each in shown["attempts"]] == expected
