from __future__ import annotations

import pickle
from typing import Any

import pytest
from mldiagnostics_api.workloads.pods import Container, PodView
from support.cluster import builders as a


def test_a_pod_is_parsed() -> None:
    raw = a.jobset().pods[1]
    view = PodView.of(raw)
    assert (view.name, view.namespace, view.uid) == (
        raw["metadata"]["name"],
        "ml",
        raw["metadata"]["uid"],
    )
    assert (view.ip, view.node, view.phase) == ("10.0.1.2", "node-1", "Running")
    assert view.completion_index == "1"
    assert view.controller is not None
    assert view.controller.kind == "Job"
    assert view.live


def test_a_pod_that_has_just_been_created_has_almost_nothing() -> None:
    bare = {"metadata": {"name": "p", "namespace": "ml", "uid": "u"}}
    view = PodView.of(bare)
    assert (view.phase, view.ip, view.node, view.containers) == ("Pending", "", "", ())
    assert view.live


def test_profiler_ports_are_found_by_name_also_in_sidecars() -> None:
    raw = a.pod(ports={"http": 80, "mldiag-prof": 9999, "mldiag-prof-1": 10000})
    raw["spec"]["initContainers"] = [
        {"name": "setup", "ports": [{"name": "mldiag-prof", "containerPort": 1}]},
        {"name": "side", "restartPolicy": "Always", "ports": [{"name": "mldiag-prof", "containerPort": 10001}]},
    ]
    raw["status"]["initContainerStatuses"] = [{"name": "side", "state": {"running": {}}}]
    assert PodView.of(raw).containers == (
        Container("train", (9999, 10000), running=True),
        Container("side", (10001,), running=True),
    )


def test_an_older_cluster_keeps_the_completion_index_in_an_annotation() -> None:
    raw = a.pod(annotations={"batch.kubernetes.io/job-completion-index": "3"})
    assert PodView.of(raw).completion_index == "3"


@pytest.mark.parametrize(
    "entry",
    [
        {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"value": "no JSON"},
        {"value": "[" * 100_000},
        {"value": "[]"},
        {"value": '{"creation-timestamp":1}'},
        {"value": '{"creation-timestamp":"someday"}'},
        {"value": '{"creation-timestamp":"2020-01-01T00:00:00Z"}'},
    ],
    ids=["elsewhere", "no JSON", "deep", "no object", "no text", "no time", "another time"],
)
def test_a_pod_without_an_injected_time_is_a_run_since_its_creation(entry: dict[str, Any]) -> None:
    raw = a.pod("notebook", labels={"managed-mldiagnostics-gke": "true"})
    raw["spec"]["containers"][0]["env"] = [{"name": "GKE_DIAGON_METADATA", **entry}]
    run = PodView.of(raw).lone_run
    assert run is not None
    assert run.workload["metadata"]["creationTimestamp"] == a.CREATED


def test_ended_and_ending_pods_are_not_live() -> None:
    assert not PodView.of(a.pod(phase="Succeeded")).live
    assert not PodView.of(a.pod(phase="Failed")).live
    assert not PodView.of(a.pod(terminating=True)).live
    assert PodView.of(a.pod(phase="Pending")).live


def test_a_hostile_pod_takes_little_memory() -> None:
    much = "9" * 250_000
    raw = a.pod(
        annotations={
            "diagon.gke.io/profiler-ports": much,
            "batch.kubernetes.io/job-completion-index": much,
            "diagon.gke.io/run-created": much,
        },
        labels={f"label-{number}": "v" * 63 for number in range(5000)} | {"managed-mldiagnostics-gke": "true"},
    )
    ports = [{"name": f"mldiag-prof-{number}", "containerPort": number} for number in range(1, 10_000)]
    raw["spec"]["containers"] = [{"name": f"c{number}", "ports": ports} for number in range(300)]
    raw["metadata"]["ownerReferences"] = [
        {"apiVersion": much, "kind": much, "name": much, "uid": much, "controller": True}
    ]
    assert len(pickle.dumps(PodView.of(raw))) < 25_000
