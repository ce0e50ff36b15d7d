"""The laws of injection on reviews recorded from the real controllers."""

from __future__ import annotations

import copy
import json
from datetime import datetime
from typing import Any

import jsonpatch
import pytest
from mldiagnostics import identity
from mldiagnostics_api.injection import InjectionReason, NotInjected, OwnersUnknown, patch
from mldiagnostics_api.names import (
    INJECTION_ANNOTATION,
    OPT_IN_LABEL,
    RUN_ANNOTATION,
    RUN_CREATED_ANNOTATION,
    RUN_LABEL,
)
from support.cluster.recordings import CLUSTER, FOLDER, NAMESPACE, Object, decided, injected, recorded

WORKLOADS = {
    "cronjob": "Job cronjob-29920728",
    "deployment": "Deployment deployment",
    "jaxjob": "JAXJob jaxjob",
    "job": "Job job",
    "jobset": "JobSet jobset",
    "leaderworkerset-leader": "LeaderWorkerSet leaderworkerset",
    "leaderworkerset-leader-early": "LeaderWorkerSet leaderworkerset",
    "leaderworkerset-worker": "LeaderWorkerSet leaderworkerset",
    "leaderworkerset-worker-early": "LeaderWorkerSet leaderworkerset",
    "mpijob-launcher": "MPIJob mpijob",
    "mpijob-worker": "MPIJob mpijob",
    "pathwaysjob": "PathwaysJob pathwaysjob",
    "pod": "Pod pod",
    "pytorchjob": "PyTorchJob pytorchjob",
    "raycluster-head": "RayCluster raycluster",
    "rayjob-head": "RayJob rayjob",
    "rayjob-submitter": "RayJob rayjob",
    "rayjob-worker": "RayJob rayjob",
    "rayservice-head": "RayService rayservice",
    "statefulset": "StatefulSet statefulset",
    "trainjob": "TrainJob trainjob",
}
OWNED = sorted(WORKLOADS.keys() - {"pod"})


def test_every_recording_is_in_the_table() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == WORKLOADS.keys()


def variables(container: Object) -> dict[str, Object]:
    return {each["name"]: each for each in container.get("env", ())}


@pytest.mark.parametrize("title", sorted(WORKLOADS))
def test_the_pod_gets_the_run_of_its_topmost_owner(title: str) -> None:
    pod, owners = recorded(title)
    patched = injected(pod, owners)
    kind, _, name = WORKLOADS[title].partition(" ")
    annotations = patched["metadata"]["annotations"]
    if owners:
        (workload,) = (each for each in owners if (each["kind"], each["metadata"]["name"]) == (kind, name))
        created = workload["metadata"]["creationTimestamp"]
    else:
        created = annotations[RUN_CREATED_ANNOTATION]
    run = identity.run_id(
        cluster=CLUSTER,
        namespace=NAMESPACE,
        kind=kind,
        name=name,
        created=datetime.fromisoformat(created),
    )
    assert annotations[RUN_ANNOTATION] == run
    assert patched["metadata"]["labels"][RUN_LABEL] == run[:32]
    for container in patched["spec"]["containers"]:
        environment = variables(container)
        assert environment["MLDIAG_RUN_ID"]["value"] == run
        identifier = json.loads(environment["GKE_DIAGON_IDENTIFIER"]["value"])
        assert (identifier["metadata.kind"], identifier["metadata.name"]) == (kind, name)
        assert json.loads(environment["GKE_DIAGON_METADATA"]["value"])["creation-timestamp"] == created


@pytest.mark.parametrize("title", sorted(WORKLOADS))
def test_additions_only_and_within_the_bound(title: str) -> None:
    pod, owners = recorded(title)
    untouched = copy.deepcopy(pod)
    patched = injected(pod, owners)
    assert pod == untouched
    assert within(pod, patched)
    assert len(json.dumps(patched)) - len(json.dumps(pod)) <= 8 * 1024


def within(before: Any, after: Any) -> bool:
    """Return whether all members of objects and all elements of lists are still there, in order."""
    if isinstance(before, dict):
        return before.keys() <= after.keys() and all(within(value, after[key]) for key, value in before.items())
    if isinstance(before, list):
        return len(before) <= len(after) and all(within(*pair) for pair in zip(before, after, strict=False))
    return bool(before == after)


@pytest.mark.parametrize("title", sorted(WORKLOADS))
def test_an_injected_pod_is_not_injected_again(title: str) -> None:
    pod, owners = recorded(title)
    patched = injected(pod, owners)
    again = decided(patched, owners)
    assert patch(patched, again) == []


@pytest.mark.parametrize("title", sorted(WORKLOADS))
def test_values_of_the_user_win(title: str) -> None:
    pod, owners = recorded(title)
    mine = [{"name": "GKE_DIAGON_IDENTIFIER", "value": "mine"}, {"name": "MLDIAG_SINKS", "value": "mine"}]
    for container in pod["spec"]["containers"]:
        container["env"] = [*mine, *container.get("env", ())]
    for container in injected(pod, owners)["spec"]["containers"]:
        names = [each["name"] for each in container["env"]]
        assert len(names) == len(set(names))
        assert container["env"][:2] == mine


@pytest.mark.parametrize("title", OWNED)
def test_an_owner_with_another_uid_does_not_count(title: str) -> None:
    pod, owners = recorded(title)
    pod["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-0000-0000-000000000000"
    decision = decided(pod, owners, {OPT_IN_LABEL: "true"})
    assert isinstance(decision, NotInjected)
    assert decision.reason == InjectionReason.OWNER_NOT_FOUND


@pytest.mark.parametrize("title", OWNED)
def test_unknown_owners_add_only_an_explanation(title: str) -> None:
    pod, _ = recorded(title)
    decision = decided(pod, OwnersUnknown("the API server did not answer within 1 s"), {OPT_IN_LABEL: "true"})
    assert isinstance(decision, NotInjected)
    patched = jsonpatch.apply_patch(pod, patch(pod, decision))
    explanation = patched["metadata"]["annotations"].pop(INJECTION_ANNOTATION)
    assert "the API server did not answer within 1 s" in explanation
    assert patched["spec"] == pod["spec"]


@pytest.mark.parametrize("title", sorted(WORKLOADS))
def test_without_the_label_only_the_namespace_opts_in_and_only_batch_kinds(title: str) -> None:
    pod, owners = recorded(title)
    for each in [pod, *owners]:
        each["metadata"].get("labels", {}).pop(OPT_IN_LABEL, None)
    assert isinstance(decided(pod, owners), NotInjected)
    decision = decided(pod, owners, {OPT_IN_LABEL: "true"})
    assert isinstance(decision, NotInjected) == (title in {"deployment", "statefulset", "pod"})


@pytest.mark.parametrize("on_pod", [True, False], ids=["on the pod", "on the workload"])
@pytest.mark.parametrize("title", OWNED)
def test_an_opt_out_counts_more_than_the_label_of_the_namespace(title: str, *, on_pod: bool) -> None:
    pod, owners = recorded(title)
    (workload,) = (each for each in owners if f"{each['kind']} {each['metadata']['name']}" == WORKLOADS[title])
    opted_out = pod if on_pod else workload
    opted_out["metadata"].setdefault("labels", {})[OPT_IN_LABEL] = "false"
    decision = decided(pod, owners, {OPT_IN_LABEL: "true"})
    assert isinstance(decision, NotInjected)
    assert patch(pod, decision) == []
