from __future__ import annotations

import re
from typing import Any

import pytest
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS, WORKLOADS, selector_text, workload_of
from support.cluster import builders as a


def matches(selector: str, labels: dict[str, str]) -> bool:
    """Match labels as the API server does, for the forms of selectors used here."""
    for term in re.split(r",(?![^(]*\))", selector):
        if match := re.fullmatch(r"(\S+) (in|notin) \((.*)\)", term):
            inside = labels.get(match[1]) in match[3].split(",")
            if inside != (match[2] == "in"):
                return False
        elif "=" in term:
            key, _, value = term.partition("=")
            if labels.get(key) != value:
                return False
        elif (term.lstrip("!") in labels) == term.startswith("!"):
            return False
    return True


@pytest.mark.parametrize(
    "world",
    [
        a.jobset(jobs={"driver": (1, 1), "workers": (2, 2)}),
        a.job(),
        a.leader_worker_set(),
        a.ray_cluster(),
        a.stateful_set(),
        a.deployment(),
        a.training_job(),
        a.training_job(kind="JAXJob"),
        a.training_job(kind="MPIJob"),
        a.jobset().owned_by("TrainJob", "trainer", "trainer.kubeflow.org/v1alpha1"),
        a.jobset().owned_by("PathwaysJob", "trainer", "pathways-job.pathways.domain/v1"),
    ],
    ids=lambda world: world.workload["kind"],
)
def test_the_selector_of_a_workload_finds_exactly_its_pods(world: a.World) -> None:
    assert world.workload is not None
    entry = workload_of(world.workload["kind"])
    assert entry is not None
    selector = entry.pods(world.workload)
    assert selector is not None
    stranger = a.jobset("other").pods[0]
    assert all(matches(selector, pod["metadata"]["labels"]) for pod in world.pods)
    assert not matches(selector, stranger["metadata"]["labels"])


def test_a_trainjob_excludes_its_initializers() -> None:
    world = a.jobset(jobs={"dataset-initializer": (1, 1), "node": (1, 2)})
    trainjob = world.owned_by("TrainJob", "trainer", "trainer.kubeflow.org/v1alpha1").workload
    entry = workload_of("TrainJob")
    assert entry is not None
    assert trainjob is not None
    selector = entry.pods(trainjob) or ""
    assert [matches(selector, pod["metadata"]["labels"]) for pod in world.pods] == [False, True, True]


@pytest.mark.parametrize(
    ("kind", "status", "cluster"),
    [
        ("RayJob", {"rayClusterName": "ray-x7"}, "ray-x7"),
        ("RayService", {"activeServiceStatus": {"rayClusterName": "ray-y8"}}, "ray-y8"),
    ],
)
def test_ray_pods_are_found_by_the_cluster_in_the_status(kind: str, status: dict[str, Any], cluster: str) -> None:
    entry = workload_of(kind)
    assert entry is not None
    workload = a.thing("ray", kind=kind, api_version="ray.io/v1", status=status)
    assert entry.pods(workload) == f"ray.io/cluster={cluster}"
    assert entry.pods(a.thing("ray", kind=kind, api_version="ray.io/v1")) is None


def test_an_entry_is_found_by_group_and_kind_for_any_version() -> None:
    for entry in WORKLOADS:
        assert workload_of(entry.kind, entry.api_version) is entry
        assert workload_of(entry.kind) is entry
    assert workload_of("JobSet", "jobset.x-k8s.io/v9") is workload_of("JobSet")
    assert workload_of("Job", "example.com/v1") is None
    assert workload_of("Job", "v1") is None


def test_groups_and_pods_cannot_be_selected_as_workloads() -> None:
    assert "CronJob" not in SELECTABLE_KINDS
    assert "Pod" not in SELECTABLE_KINDS
    assert {"JobSet", "Job", "LeaderWorkerSet", "RayJob", "RayCluster", "StatefulSet"} <= set(SELECTABLE_KINDS)


def test_parts_and_plurals_are_consistent() -> None:
    kinds = {entry.kind for entry in WORKLOADS}
    for entry in WORKLOADS:
        assert kinds.issuperset(entry.parts)
        assert entry.plural == entry.kind.lower() + "s"


def test_a_selector_is_formatted_for_the_api() -> None:
    selector = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "NotIn", "values": ["yes"]},
            {"key": "gpu", "operator": "Exists"},
            {"key": "cpu", "operator": "DoesNotExist"},
        ],
    }
    assert selector_text(selector) == "app=x,tier in (a,b),old notin (yes),gpu,!cpu"
    assert not selector_text({})
