"""Diagnoses of captures by Jobs of a real kubelet: the slowed pod is named, and no trace changes a capture."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import claim_scene
import pytest
from demo import capturing
from demo.installation import NAMESPACE as OPERATORS
from demo.kubectl import Kubectl, eventually
from demo.on_cluster import start_training
from injection_scene import placed, temporary_namespace
from mldiagnostics_api.names import CAPTURE_REASON_ANNOTATION, SCHEDULE_LABEL
from release.parts import OPERATOR

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NAMESPACE = f"e2e-diagnosis-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
DEADLINE_S = 240
SLOW = {"SLOW_INPUT_PROCESS": 1, "SLOW_INPUT_SECONDS": 0.2, "REST_SECONDS": 0.01}
"""Its input costs most, also if a busy machine makes all other parts of a step slower."""
TRAINING = {"workloadRef": {"kind": "JobSet", "name": "training"}}
SCHEDULE: dict[str, Any] = {
    "apiVersion": "diagon.gke.io/v1alpha1",
    "kind": "MLDiagnosticsSchedule",
    "metadata": {"name": "often"},
    "spec": {
        "schedule": {"every": "1m"},
        "capture": {"pulse": True, "durationMilliseconds": 3000},
        "budget": {"captures": 1},
    },
}
PROGRAM = Path(__file__).parent / "chaos/programs/profiler.py"
HOSTILE_MEBIBYTES = 200


@pytest.fixture(scope="module")
def operator_values(claim: str) -> dict[str, Any]:
    """Values of an operator whose Jobs see its traces."""
    return claim_scene.values(claim)


@pytest.fixture(scope="module")
def slowed(kubectl: Kubectl, prepared: None, operator: None) -> Iterator[list[str]]:  # noqa: ARG001 - must exist
    """Run the example's JobSet, whose second pod reads its input slowly; yield the names of its pods.

    A schedule is there before, so that its slot passes while the tests run.
    """
    with temporary_namespace(kubectl, NAMESPACE, {}):
        kubectl.apply(placed(SCHEDULE, NAMESPACE))
        yield start_training(kubectl, NAMESPACE, **SLOW)


def finish(kubectl: Kubectl, name: str, **trigger: Any) -> dict[str, Any]:
    """Apply a capture and return it once it is finished."""
    manifest = {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"triggerCapture": trigger},
    }
    kubectl.apply(manifest)
    return capturing.until_finished(kubectl, NAMESPACE, name, deadline_s=DEADLINE_S)


def diagnosed(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """Wait until a capture has a diagnosis, or none could be made; return the capture."""
    return capturing.until_diagnosed(kubectl, NAMESPACE, name, deadline_s=DEADLINE_S)


def job_of(capture: dict[str, Any]) -> str:
    return f"mldiag-diagnosis-{capture['metadata']['uid']}"


def test_a_slowed_pod_is_named_in_the_capture_and_in_its_run(kubectl: Kubectl, slowed: list[str]) -> None:
    finish(kubectl, "slow", target=TRAINING, durationSeconds=5)
    capture = diagnosed(kubectl, "slow")
    condition = capturing.condition(capture, "Diagnosed")
    assert (condition["status"], condition["reason"]) == ("True", "Diagnosed"), condition
    diagnosis = capture["status"]["diagnosis"]
    assert diagnosis["summary"].startswith(f"SlowHost: {slowed[1]} in "), diagnosis
    assert [target["pod"] for target in diagnosis["findings"][0]["targets"]] == [slowed[1]]
    assert (capture["status"]["phase"], capture["status"]["progress"]) == ("Succeeded", "2/2")

    header, row = kubectl("get", "mldc", "slow", HERE).splitlines()
    column = next(match for match in re.finditer(r"\S+", header) if match[0] == "DIAGNOSIS")
    assert row[column.start() :].startswith(diagnosis["summary"]), row
    selected = f"--field-selector=involvedObject.uid={capture['metadata']['uid']},reason=Diagnosed"
    [event] = eventually(lambda: kubectl.items("events", selected, HERE), "the event", deadline_s=DEADLINE_S)
    assert slowed[1] in event["message"]

    def findings() -> list[dict[str, Any]] | None:
        runs = kubectl.items("mlruns", HERE)
        return next((run["status"]["findings"] for run in runs if run.get("status", {}).get("findings")), None)

    [first, *_] = eventually(findings, "the findings of the run", deadline_s=DEADLINE_S)
    assert (first["code"], first["hosts"]) == ("SlowHost", [slowed[1]])
    assert first["capture"] == "slow" or first["capture"].startswith("often-")  # the newest one


def test_a_job_has_no_token_and_sees_one_session(kubectl: Kubectl, slowed: list[str]) -> None:
    finish(kubectl, "seen", podName=slowed[0], durationMilliseconds=500)
    capture = diagnosed(kubectl, "seen")
    where = f"--namespace={OPERATORS}"
    [pod] = kubectl.items("pods", f"--selector=batch.kubernetes.io/job-name={job_of(capture)}", where)
    assert pod["status"]["phase"] == "Succeeded"
    [container] = pod["spec"]["containers"]
    assert container["image"] == OPERATOR.default_image
    status = capture["status"]
    directory = f"{status['captureResult']['outputLocation'].removeprefix('volume:///')}/plugins/profile"
    assert {mount["mountPath"]: mount.get("subPath") for mount in container["volumeMounts"]} == {
        "/tmp": None,
        f"/traces/plugins/profile/{status['sessionId']}": f"{directory}/{status['sessionId']}",
    }, "no token is mounted"
    labelled = ("label", "namespace", OPERATORS, "pod-security.kubernetes.io/enforce=restricted", "--dry-run=server")
    assert "labeled" in kubectl(*labelled, "--overwrite", "--warnings-as-errors")


def test_a_capture_without_a_diagnosis_has_no_job(kubectl: Kubectl, slowed: list[str]) -> None:
    capture = finish(kubectl, "off", podName=slowed[0], durationMilliseconds=500, diagnosis="Off")
    assert "diagnosis" not in capture["status"]
    assert not capturing.condition(capture, "Diagnosed")
    assert not kubectl.exists("job", job_of(capture), f"--namespace={OPERATORS}")


@pytest.mark.usefixtures("slowed")
def test_a_trace_beyond_the_limits_of_its_reader_changes_no_capture(kubectl: Kubectl) -> None:
    with_programs = {"name": "programs", "namespace": NAMESPACE}
    programs = {PROGRAM.name: PROGRAM.read_text()}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": with_programs, "data": programs})
    kubectl.apply(placed(hostile(), NAMESPACE))
    kubectl("wait", "--for=condition=Ready", "pod/hostile", HERE, "--timeout=120s", timeout_s=130)
    finish(kubectl, "hostile", podName="hostile", durationMilliseconds=500)
    capture = diagnosed(kubectl, "hostile")
    status = capture["status"]
    assert (status["phase"], status["captureResult"]["status"], status["progress"]) == ("Succeeded", "Succeeded", "1/1")
    condition = capturing.condition(capture, "Diagnosed")
    assert status["diagnosis"]["findings"][0]["code"] == "Inconclusive", condition
    assert "hostile.xplane.pb: needs more memory than the limit allows" in condition["message"]


def test_a_schedule_captures_a_jobset_that_starts_after_it(kubectl: Kubectl, slowed: list[str]) -> None:
    kubectl("wait", "--for=condition=Ready", "mlds/often", HERE, "--timeout=60s", timeout_s=70)
    uid = kubectl.get("mlds", "often", HERE)["metadata"]["uid"]
    of_schedule = f"--selector={SCHEDULE_LABEL}={uid}"
    [made] = eventually(lambda: kubectl.items("mldc", of_schedule, HERE), "the slot's capture", deadline_s=DEADLINE_S)
    name = made["metadata"]["name"]
    capturing.until_finished(kubectl, NAMESPACE, name, deadline_s=DEADLINE_S)
    capture = diagnosed(kubectl, name)
    assert capture["status"]["diagnosis"]["summary"].startswith(f"SlowHost: {slowed[1]} in "), capture["status"]
    assert capture["metadata"]["annotations"][CAPTURE_REASON_ANNOTATION].startswith("the slot of ")

    def recorded() -> dict[str, Any] | None:
        status: dict[str, Any] = kubectl.get("mlds", "often", HERE)["status"]
        return status if status["captures"][0]["state"] == "Finished" else None

    status = eventually(recorded, "the record of the capture", deadline_s=DEADLINE_S)
    assert [(each["name"], "slotTime" in each, each["pulse"]) for each in status["captures"]] == [(name, True, True)]
    assert (status["captures"][0]["bytes"], status["runs"]) == (status["bytesLastDay"], 1)


def hostile() -> dict[str, Any]:
    """Return a pod whose profiler answers with more bytes than a reader of these tests may take."""
    container = {
        "name": "main",
        "image": OPERATOR.default_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "/programs/profiler.py", f"9999=large:{HOSTILE_MEBIBYTES}"],
        "readinessProbe": {"tcpSocket": {"port": 9999}, "periodSeconds": 1},
        "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}, "spec": spec}
