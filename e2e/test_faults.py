"""Faults during captures: lost pods, lost operators, and busy profilers."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from demo import capturing, profiles
from demo.installation import NAMESPACE as OPERATOR_NAMESPACE
from demo.installation import OPERATOR
from demo.kubectl import Kubectl, eventually
from scene import NAMESPACE, capture, captured_pods, solo
from support.time_limits import with_enough_time

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

JOBSET = {"workloadRef": {"kind": "JobSet", "name": "training"}}
BRIEF = {"target": JOBSET, "durationMilliseconds": 500}
DELETE_NOW = "--grace-period=1"

# Run in the operator's pod: hold the profiler of a pod for six seconds; print when it is held, and its earliest end.
HOLD = """
import sys, time, grpc
channel = grpc.insecure_channel(sys.argv[1])
profile = channel.unary_unary("/tensorflow.ProfilerService/Profile")
for_ms = lambda varint: bytes([0x22, 3 + len(varint), 0x28, 1, 0x48]) + varint + bytes([0x48, 1])

def hold():
    while True:  # the probe below may have taken the profiler
        began = time.time()
        held = profile.future(for_ms(bytes([0xF0, 0x2E])), timeout=60)
        while not held.done():
            try:
                profile(for_ms(bytes([0])), timeout=30)
            except grpc.RpcError as error:
                if "Another profiling session" in error.details():
                    return held, began

held, began = hold()
print("held", flush=True)
held.result()
print(began + 6, flush=True)
"""


def started(resource: dict[str, Any]) -> bool:
    """Return whether the targets are recording."""
    return capturing.is_recording(resource.get("status", {}))


def planned(resource: dict[str, Any]) -> bool:
    """Return whether the intent of the capture is written."""
    return bool(resource.get("status", {}).get("phase") == "Running")


def started_or_finished(resource: dict[str, Any]) -> bool:
    """Return whether the targets are recording, or the capture is finished."""
    return started(resource) or capturing.finished(resource)


def planned_or_finished(resource: dict[str, Any]) -> bool:
    """Return whether the intent is written, or the capture is finished."""
    return planned(resource) or capturing.finished(resource)


def apply_until(kubectl: Kubectl, manifest: dict[str, Any], wanted: Any) -> dict[str, Any]:
    """Apply a capture and return it as soon as `wanted` accepts it."""
    name = manifest["metadata"]["name"]
    kubectl.apply(manifest)

    def poll() -> dict[str, Any] | None:
        item: dict[str, Any] = kubectl.get("mldc", name, f"--namespace={NAMESPACE}")
        if wanted(item):
            return item
        assert not capturing.finished(item), item["status"]
        return None

    return eventually(poll, f"capture {name} {wanted.__name__}", deadline_s=60, pause_s=0.1)


def end(kubectl: Kubectl, name: str, *, deadline_s: float = 90) -> dict[str, Any]:
    return capturing.until_finished(kubectl, NAMESPACE, name, deadline_s=deadline_s)


def test_a_pod_deleted_during_a_capture_fails_alone(kubectl: Kubectl) -> None:
    def delete_one(duration_s: int) -> tuple[dict[str, Any], str, str]:
        """Return the capture, the deleted pod and the other one."""
        name = f"mortal-{duration_s}"
        with solo(kubectl, "Deployment", name, pods=2):
            rollout = ("rollout", "status", f"deployment/{name}", f"--namespace={NAMESPACE}", "--timeout=90s")
            kubectl(*rollout, timeout_s=100)
            pods = kubectl.items("pods", f"--selector=app={name}", f"--namespace={NAMESPACE}")
            victim, survivor = sorted(pod["metadata"]["name"] for pod in pods)
            target = {"selector": {"matchLabels": {"app": name}}}
            manifest = capture(name, target=target, durationSeconds=duration_s, minimumCaptured=1)
            apply_until(kubectl, manifest, started_or_finished)
            kubectl("delete", "pod", victim, f"--namespace={NAMESPACE}", DELETE_NOW)
            return end(kubectl, name, deadline_s=90 + duration_s), victim, survivor

    def was_recording(attempt: tuple[dict[str, Any], str, str]) -> bool:
        return attempt[1] not in captured_pods(attempt[0])

    done, victim, survivor = with_enough_time(delete_one, was_recording, limits_s=(5, 20, 60))
    assert done["status"]["phase"] == "Succeeded"
    assert captured_pods(done) == [survivor]
    (lost,) = (result for result in done["status"]["results"] if result["pod"] == victim)
    assert (lost["state"], lost["reason"]) == ("Failed", "ConnectionLost")


def test_a_port_without_a_server_is_named(kubectl: Kubectl) -> None:
    with solo(kubectl, "StatefulSet", "deaf"):
        kubectl("rollout", "status", "statefulset/deaf", f"--namespace={NAMESPACE}", "--timeout=90s", timeout_s=100)
        kubectl.apply(capture("deaf", podName="deaf-0", capturePort=10003, durationSeconds=1))
        status = end(kubectl, "deaf")["status"]
    assert status["phase"] == "Failed"
    (result,) = status["results"]
    assert result["reason"] == "NothingListens"
    assert "10003" in result["message"]


def test_an_operator_killed_during_a_capture_is_replaced_and_captures_again(
    kubectl: Kubectl, training: list[str], tmp_path: Path
) -> None:
    def kill_during(duration_s: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the capture before and after."""
        manifest = capture(f"killed-{duration_s}", target=JOBSET, durationSeconds=duration_s)
        running = apply_until(kubectl, manifest, started_or_finished)
        kill_holder(kubectl, running)
        return running, end(kubectl, f"killed-{duration_s}", deadline_s=140 + duration_s)

    def was_recording(attempt: tuple[dict[str, Any], dict[str, Any]]) -> bool:
        return int(attempt[1]["status"]["attempt"]) > 1

    running, done = with_enough_time(kill_during, was_recording, limits_s=(10, 30, 90))
    status = done["status"]
    assert (status["phase"], status["attempt"]) == ("Succeeded", 2)
    assert status["sessionId"] == f"{running['status']['sessionId']}-2"
    assert status["holder"] != running["status"]["holder"]
    directory = capturing.fetch(kubectl, done, tmp_path)
    assert [steps.host for steps in profiles.read(profiles.traces(directory, status["sessionId"]))] == training


@pytest.mark.usefixtures("training")
def test_an_operator_killed_before_the_start_does_not_change_the_capture(kubectl: Kubectl) -> None:
    manifest = capture("early", target=JOBSET, durationMilliseconds=500, startLeadMilliseconds=40_000)
    running = apply_until(kubectl, manifest, planned)
    kill_holder(kubectl, running)
    status = end(kubectl, "early", deadline_s=150)["status"]
    assert (status["phase"], status["attempt"], status["progress"]) == ("Succeeded", 1, "2/2")
    assert status["sessionId"] == running["status"]["sessionId"]
    assert status["holder"] != running["status"]["holder"]


@pytest.mark.usefixtures("training")
def test_a_capture_applied_without_an_operator_runs_later(kubectl: Kubectl) -> None:
    deployment = (f"deployment/{OPERATOR}", f"--namespace={OPERATOR_NAMESPACE}")
    replicas = kubectl.get(*deployment)["spec"]["replicas"]
    kubectl("scale", *deployment, "--replicas=0")
    try:
        selector = f"--selector=app.kubernetes.io/name={OPERATOR}"
        wait = ("wait", "--for=delete", "pod", selector, f"--namespace={OPERATOR_NAMESPACE}", "--timeout=240s")
        kubectl(*wait, timeout_s=250)
        kubectl.apply(capture("patient", **BRIEF))
    finally:
        kubectl("scale", *deployment, f"--replicas={replicas}")
    assert end(kubectl, "patient")["status"]["phase"] == "Succeeded"


def test_a_busy_profiler_is_captured_afterwards(kubectl: Kubectl, training: list[str]) -> None:
    address = f"{kubectl.get('pod', training[0], f'--namespace={NAMESPACE}')['status']['podIP']}:9999"
    with held(kubectl, address) as freed:
        kubectl.apply(capture("busy", podName=training[0], durationMilliseconds=500))
        status = end(kubectl, "busy")["status"]
        freed_at = freed()
    assert status["phase"] == "Succeeded"
    assert _time(status["results"][0]["startTime"]).timestamp() >= freed_at


@pytest.mark.usefixtures("training")
def test_captures_of_the_same_pods_run_one_after_the_other(kubectl: Kubectl) -> None:
    def reason_of(name: str) -> str:
        item = kubectl.get("mldc", name, f"--namespace={NAMESPACE}")
        return str(capturing.condition(item, "Accepted").get("reason", ""))

    def both(duration_s: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return the reason why the second capture waits, and both results."""
        names = (f"first-{duration_s}", f"second-{duration_s}")
        apply_until(kubectl, capture(names[0], target=JOBSET, durationSeconds=duration_s), planned_or_finished)
        kubectl.apply(capture(names[1], **BRIEF))
        waits = partial(reason_of, names[1])
        reason = eventually(waits, "the reason why the second capture waits", deadline_s=60)
        first, second = (end(kubectl, name, deadline_s=90 + duration_s)["status"] for name in names)
        return reason, first, second

    # The first one may have ended before the second one is seen.
    reason, first, second = with_enough_time(both, lambda attempt: attempt[0] == "PodBusy", limits_s=(4, 20, 60))
    assert reason == "PodBusy"
    assert (first["phase"], second["phase"]) == ("Succeeded", "Succeeded")
    stops = [_time(result["stopTime"]) for result in first["results"]]
    starts = [_time(result["startTime"]) for result in second["results"]]
    assert max(stops) <= min(starts)


def test_a_cancelled_capture_keeps_its_profiles(kubectl: Kubectl, training: list[str], tmp_path: Path) -> None:
    apply_until(kubectl, capture("cancelled", target=JOBSET, durationSeconds=50), started)
    kubectl(
        "patch", "mldc", "cancelled", f"--namespace={NAMESPACE}", "--type=merge", '--patch={"spec":{"cancel":true}}'
    )
    done = end(kubectl, "cancelled", deadline_s=30)
    assert capturing.condition(done, "Complete")["reason"] == "Cancelled"
    directory = capturing.fetch(kubectl, done, tmp_path)
    files = profiles.traces(directory, done["status"]["sessionId"])
    assert [steps.host for steps in profiles.read(files)] == training


@pytest.mark.usefixtures("training")
def test_deleting_a_capture_frees_its_pods(kubectl: Kubectl) -> None:
    apply_until(kubectl, capture("deleted", target=JOBSET, durationSeconds=50), started)
    kubectl("delete", "mldc", "deleted", f"--namespace={NAMESPACE}", "--timeout=10s")
    kubectl.apply(capture("after", **BRIEF))
    assert end(kubectl, "after", deadline_s=30)["status"]["phase"] == "Succeeded"


def kill_holder(kubectl: Kubectl, running: dict[str, Any]) -> None:
    """Delete the pod that runs a capture, with a grace period of one second."""
    pod = running["status"]["holder"].partition("/")[0]
    kubectl("delete", "pod", pod, f"--namespace={OPERATOR_NAMESPACE}", DELETE_NOW, "--wait=false")


@contextmanager
def held(kubectl: Kubectl, address: str) -> Iterator[Any]:
    """Hold a profiler from the operator's pod; yield a function that returns its earliest end (Unix s)."""
    command = [str(kubectl.binary), f"--kubeconfig={kubectl.kubeconfig}", "exec", f"deployment/{OPERATOR}"]
    command += [f"--namespace={OPERATOR_NAMESPACE}", "--", "python", "-c", HOLD, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield lambda: float(holder.communicate(timeout=60)[0])
        finally:
            holder.kill()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
