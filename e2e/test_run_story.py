"""The story of one run, from its queue to the deletion of its files: events, profiles, conditions."""

import secrets
from collections.abc import Iterator
from itertools import groupby

import injection_workloads as make
import pytest
from cloud import Cloud
from cluster.paths import E2E
from demo import capturing, following
from demo.installation import TRAINING_IMAGE
from demo.kubectl import Kubectl
from injection_scene import OPTED_IN, Object, placed, pods_of, temporary_namespace
from run_scene import DEADLINE_S, Runs, phase, truths, waits

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-story-{secrets.token_hex(2)}"
WORKLOAD = "JobSet/story"
TRAIN = ["/opt/training/bin/python", "-c", (E2E / "programs/restarted.py").read_text()]
RESOURCES = {"requests": {"cpu": "50m", "memory": "256Mi"}}
HOSTS = 2


def captured(name: str, run: Object) -> Object:
    """Return a capture of all hosts of a run, in the storage of the run."""
    trigger = {"target": {"runRef": {"name": run["metadata"]["name"]}}, "durationMilliseconds": 500}
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"triggerCapture": trigger},
    }


def reports(status: Object) -> bool:
    """Return whether all hosts report, and train."""
    summary = status.get("hosts", {}).get("summary")
    return bool(summary == f"{HOSTS}/{HOSTS}" and status.get("progress", {}).get("step"))


def profiles(status: Object) -> dict[str, Object]:
    """Return the profiles that have ended by their source."""
    return {each["source"]: each for each in status.get("profileSessions", ()) if "stopTime" in each}


@pytest.fixture(scope="module")
def runs(kubectl: Kubectl, operator: None, webhook: None, prepared: None) -> Iterator[Runs]:  # noqa: ARG001 - must exist
    with temporary_namespace(kubectl, NAMESPACE, {}):
        following.until_published(kubectl, NAMESPACE, deadline_s=DEADLINE_S)
        yield Runs(kubectl, NAMESPACE)


@pytest.fixture(scope="module")
def run(kubectl: Kubectl, runs: Runs, cloud: Cloud) -> Object:
    """Take a run from its queue over a capture and a restart to its end, and return it.

    Chart → webhook → pod → SDK → control plane → MLRun.
    """
    pod = make.pod_spec(image=TRAINING_IMAGE, command=TRAIN, resources=RESOURCES)
    manifest = placed(make.jobset("story", labels=OPTED_IN, pod=pod, hosts=HOSTS), NAMESPACE)
    kubectl.apply(manifest | {"spec": manifest["spec"] | {"suspend": True}})
    run = runs.until(WORKLOAD, waits)
    name = run["metadata"]["name"]
    runs.change(f"mlrun/{name}", storageLocation=f"gs://{cloud.bucket}/runs")
    runs.change(WORKLOAD, suspend=False)
    for condition in ("Admitted", "Started", "Reporting", "Profilable"):
        runs.wait(run, condition)
    runs.until(WORKLOAD, reports)
    assert f"{HOSTS}/{HOSTS}" in kubectl("get", "mlrun", name, runs.here)
    kubectl.apply(captured("whole", run))
    capture = capturing.until_finished(kubectl, NAMESPACE, "whole", deadline_s=DEADLINE_S)
    assert capture["status"]["phase"] == "Succeeded", capture["status"]
    runs.until(WORKLOAD, lambda status: profiles(status).keys() >= {"Program", "Capture"})
    first, *_ = pods_of(kubectl, NAMESPACE, "story", count=HOSTS)
    kubectl("delete", "pod", first["metadata"]["name"], runs.here, "--wait=false")
    runs.wait(run, "Complete")
    return runs.until(WORKLOAD, phase("Completed"))


@pytest.fixture(scope="module")
def described(kubectl: Kubectl, runs: Runs, run: Object) -> str:
    """Return what kubectl prints about the run."""
    runs.story(run, last="Completed")
    return kubectl("describe", "mlrun", run["metadata"]["name"], runs.here)


def test_the_events_of_a_run_have_its_story(runs: Runs, run: Object, described: str) -> None:
    story = [event for event in runs.story(run, last="Completed") if not event["reason"].startswith("Artifacts")]
    reasons = [reason for reason, _ in groupby(event["reason"] for event in story if event["reason"] != "Disrupted")]
    assert reasons == ["Admitted", "Started", "Captured", "Restarted", "Completed"]
    for event in story:
        assert event["message"] in described
    for part in (
        "the JobSet restarted its Jobs, restart 1 of at most 1",
        "attempt 0 ended, Deleted",
        "of capture whole",
    ):
        assert part in described


def test_the_status_of_a_run_keeps_attempts_conditions_and_profiles(run: Object, cloud: Cloud) -> None:
    status = run["status"]
    assert [(each["attempt"], each.get("cause")) for each in status["attempts"]] == [(0, "Deleted"), (1, None)]
    ended = {"Admitted": "True", "Started": "True", "Reporting": "False", "Profilable": "False", "Complete": "True"}
    assert truths(status).items() >= ended.items()
    by_program, by_capture = (profiles(status)[source] for source in ("Program", "Capture"))
    assert (by_program["id"], by_program["state"]) == ("a0-s5", "stored")
    assert (by_capture["capture"], by_capture["state"]) == ("whole", "Succeeded")
    assert by_capture["directory"] == f"gs://{cloud.bucket}/runs/{status['runId']}"


@pytest.mark.usefixtures("described")
def test_the_files_of_a_run_are_deleted_with_it_if_its_spec_says_so(
    kubectl: Kubectl, runs: Runs, run: Object, cloud: Cloud
) -> None:
    name, run_id = run["metadata"]["name"], run["status"]["runId"]
    prefix = f"runs/{run_id}"
    kubectl("delete", "jobset", "story", runs.here)
    assert any(file.startswith("reported/") for file in runs.files_in_volume(run))
    assert {file.rpartition("/")[2] for file in cloud.names(prefix)} >= {"capture.json"}
    runs.change(f"mlrun/{name}", retention={"deleteArtifacts": True})
    runs.until(WORKLOAD, lambda _: kubectl.get("mlrun", name, runs.here)["metadata"].get("finalizers"))
    kubectl("delete", "mlrun", name, runs.here, f"--timeout={DEADLINE_S}s", timeout_s=DEADLINE_S + 10)
    assert (runs.files_in_volume(run), cloud.names(prefix)) == ([], [])
    assert runs.story(run, last="ArtifactsDeleted")
