"""Captures of real JAX jobs on a cluster: all targets, all storages, read by XProf."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cloud import Cloud
from demo import capturing, profiles
from demo.kubectl import Kubectl, eventually
from demo.on_cluster import capture_of, last_step
from scene import NAMESPACE, capture, captured_pods, solo
from viewer import hosts_in_xprof

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

BRIEF = {"durationMilliseconds": 500}
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "training"}


def finish(kubectl: Kubectl, manifest: dict[str, Any], *, deadline_s: float = 90) -> dict[str, Any]:
    kubectl.apply(manifest)
    return capturing.until_finished(kubectl, NAMESPACE, manifest["metadata"]["name"], deadline_s=deadline_s)


def test_a_peer_object_profiles_every_host_and_xprof_opens_the_session(
    kubectl: Kubectl, training: list[str], tmp_path: Path
) -> None:
    kubectl.apply(capture_of(training, name="peer", namespace=NAMESPACE))
    kubectl("wait", "--for=condition=Complete", "mldc/peer", f"--namespace={NAMESPACE}", "--timeout=90s", timeout_s=100)
    status = kubectl.get("mldc", "peer", f"--namespace={NAMESPACE}")["status"]
    assert (status["phase"], status["progress"]) == ("Succeeded", "2/2")
    assert status["targets"] == {"total": 2, "captured": 2, "failed": 0, "skipped": 0}
    assert status["captureResult"] == {"status": "Succeeded", "outputLocation": "volume:///default/training"}
    assert "startSkewMilliseconds" in status

    directory = capturing.fetch(kubectl, kubectl.get("mldc", "peer", f"--namespace={NAMESPACE}"), tmp_path)
    session = status["sessionId"]
    assert hosts_in_xprof(directory, session) == set(training)
    files = profiles.traces(directory, session)
    assert [file.stat().st_size for file in files] == [result["bytes"] for result in _by_pod(status)]
    assert all(steps.count > 1 and steps.mean_ms for steps in profiles.read(files))
    record = json.loads((directory / "plugins/profile" / session / "capture.json").read_text())
    assert {target["pod"] for target in record["targets"]} == set(training)


def test_the_job_continues_after_a_capture(kubectl: Kubectl, training: list[str]) -> None:
    manifest = capture("trains-on", target={"workloadRef": JOBSET}, **BRIEF)
    assert finish(kubectl, manifest)["status"]["phase"] == "Succeeded"
    for pod in training:
        before = last_step(kubectl, NAMESPACE, pod)
        eventually(lambda: last_step(kubectl, NAMESPACE, pod) > before, f"more steps of {pod}", deadline_s=60)  # noqa: B023


def test_pods_write_to_their_file_system_if_that_is_allowed(kubectl: Kubectl, training: list[str]) -> None:
    done = finish(kubectl, capture("in-pod", target={"workloadRef": JOBSET}, storageLocation="/tmp/profiles", **BRIEF))
    assert done["status"]["phase"] == "Succeeded"
    session = f"/tmp/profiles/plugins/profile/{done['status']['sessionId']}"
    for pod in training:
        listed = kubectl("exec", pod, f"--namespace={NAMESPACE}", "--", "ls", session).split()
        assert listed == [f"{pod}.xplane.pb"]


def test_traces_go_to_a_bucket(kubectl: Kubectl, training: list[str], cloud: Cloud, tmp_path: Path) -> None:
    location = f"gs://{cloud.bucket}/profiles"
    done = finish(kubectl, capture("bucket", target={"workloadRef": JOBSET}, storageLocation=location, **BRIEF))
    assert (done["status"]["phase"], done["status"]["captureResult"]["outputLocation"]) == ("Succeeded", location)
    session = done["status"]["sessionId"]
    directory = cloud.download("profiles", tmp_path)
    assert hosts_in_xprof(directory, session) == set(training)


def test_a_missing_bucket_fails_the_capture_with_its_name(kubectl: Kubectl, cloud: Cloud) -> None:
    manifest = capture(
        "no-bucket",
        target={"workloadRef": JOBSET},
        storageLocation=f"gs://{cloud.bucket}-missing/profiles",
        deadlineSeconds=10,
        **BRIEF,
    )
    status = finish(kubectl, manifest)["status"]
    assert status["phase"] == "Failed"
    assert f"{cloud.bucket}-missing" in status["message"]


@pytest.mark.parametrize(
    ("name", "target", "ranks"),
    [
        ("jobset", {"workloadRef": JOBSET}, [0, 1]),
        ("job", {"workloadRef": {"kind": "Job", "name": "training-workers-0"}}, [0, 1]),
        ("rank", {"workloadRef": JOBSET, "ranks": "1"}, [1]),
        ("limit", {"workloadRef": JOBSET, "limit": 1}, [0]),
        ("selector", {"selector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "training"}}}, [0, 1]),
    ],
)
def test_a_target_selects_its_pods(
    kubectl: Kubectl, training: list[str], name: str, target: dict[str, Any], ranks: list[int]
) -> None:
    done = finish(kubectl, capture(f"target-{name}", target=target, **BRIEF))
    assert done["status"]["phase"] == "Succeeded"
    assert captured_pods(done) == [training[rank] for rank in ranks]


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_capture_waits_for_the_pods_of_a_starting_workload(kubectl: Kubectl, kind: str) -> None:
    name = f"solo-{kind.lower()}"
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    with solo(kubectl, kind, name):
        manifest = capture(f"waits-{name}", target={"workloadRef": reference}, waitForPodsSeconds=90, **BRIEF)
        done = finish(kubectl, manifest, deadline_s=150)
        assert (done["status"]["phase"], len(captured_pods(done))) == ("Succeeded", 1)


@pytest.mark.usefixtures("prepared", "leader_worker_sets")
def test_the_workers_of_a_leader_worker_set_are_ranked_after_their_leader(kubectl: Kubectl) -> None:
    reference = {"kind": "LeaderWorkerSet", "name": "group"}
    with solo(kubectl, "LeaderWorkerSet", "group", pods=2):
        manifest = capture("group", target={"workloadRef": reference}, waitForPodsSeconds=90, **BRIEF)
        done = finish(kubectl, manifest, deadline_s=150)
    assert done["status"]["phase"] == "Succeeded"
    ranked = {result["rank"]: result["pod"] for result in done["status"]["results"]}
    assert ranked == {0: "group-0", 1: "group-0-1"}


@pytest.mark.usefixtures("training")
def test_a_dry_run_reports_the_targets_and_contacts_none(kubectl: Kubectl) -> None:
    done = finish(kubectl, capture("dry", target={"workloadRef": JOBSET}, dryRun=True))
    assert done["status"]["phase"] == "Succeeded"
    assert capturing.condition(done, "Complete")["reason"] == "DryRun"
    assert done["status"]["targets"]["total"] == 2
    assert captured_pods(done) == []


@pytest.mark.usefixtures("training")
def test_an_unknown_pod_is_reported_with_the_existing_ones(kubectl: Kubectl, training: list[str]) -> None:
    status = finish(kubectl, capture("lost", podName="training-workers-0-7", **BRIEF))["status"]
    assert status["phase"] == "Failed"
    assert "training-workers-0-7" in status["message"]
    assert training[0] in status["message"]


@pytest.mark.usefixtures("training")
def test_kubectl_shows_and_explains_captures(kubectl: Kubectl) -> None:
    finish(kubectl, capture("shown", target={"workloadRef": JOBSET}, **BRIEF))
    header, row = kubectl("get", "mldc", "shown", f"--namespace={NAMESPACE}").splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", header)]  # cells may be empty, or have spaces
    ends = [*starts[1:], None]
    shown = {header[at:end].strip(): row[at:end].strip() for at, end in zip(starts, ends, strict=True)}
    assert shown["NAME"] == "shown"
    assert {"Succeeded", "2/2"} <= set(shown.values())
    assert {"PROGRESS", "SESSION", "AGE"} <= set(shown)
    explained = kubectl("explain", "mldc.spec.triggerCapture.durationSeconds")
    assert "Duration of the recording" in explained


def _by_pod(status: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(status["results"], key=lambda result: str(result["pod"]))
