from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.ranking import natural, order, part_of, position, slice_of, without_superseded
from support.cluster import builders as a

LABELS = [
    "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "ray.io/node-type",
    "ray.io/worker-group-replica-index",
    "training.kubeflow.org/replica-type",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
]


@pytest.mark.parametrize(
    "world",
    [
        a.jobset(jobs={"driver": (1, 1), "workers": (11, 12)}),
        a.job(pods=12),
        a.leader_worker_set(groups=11, size=3),
        a.ray_cluster(workers=12),
        a.stateful_set(pods=12),
        a.training_job(workers=12),
    ],
    ids=lambda world: world.workload["kind"],
)
def test_pods_are_in_the_order_of_their_indices(world: a.World) -> None:
    expected = [pod["metadata"]["name"] for pod in world.pods]
    shuffled = world.views()
    random.shuffle(shuffled)
    assert [pod.name for pod in sorted(shuffled, key=order)] == expected


def test_without_labels_pods_are_in_natural_order_of_names() -> None:
    pods = [PodView.of(a.pod(name)) for name in ("w-10", "w-9", "v-11")]
    assert [pod.name for pod in sorted(pods, key=order)] == ["v-11", "w-9", "w-10"]


def test_ray_workers_without_replica_index_follow_the_head_by_name() -> None:
    world = a.ray_cluster(workers=3, indexed=False)
    for pod, name in zip(world.pods, ("ray-z-head", "ray-w-c", "ray-w-a", "ray-w-b"), strict=True):
        pod["metadata"]["name"] = name
    assert [pod.name for pod in sorted(world.views(), key=order)] == ["ray-z-head", "ray-w-a", "ray-w-b", "ray-w-c"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(LABELS), st.sampled_from(["", "0", "3", "head", "worker", "x", "-1"])),
        min_size=2,
        max_size=5,
    )
)
def test_any_labels_can_be_ordered(label_sets: list[dict[str, str]]) -> None:
    pods = [PodView.of(a.pod(f"p-{n}", labels=labels)) for n, labels in enumerate(label_sets)]
    ordered = sorted(pods, key=order)
    assert sorted(random.sample(pods, len(pods)), key=order) == ordered
    assert all(slice_of(pod) is None or isinstance(slice_of(pod), int) for pod in pods)


@given(st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True), st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True))
def test_natural_keys_compare_for_all_names(one: str, other: str) -> None:
    assert (natural(one) < natural(other)) != (natural(other) <= natural(one))


def test_slices_and_parts() -> None:
    jobset = a.jobset(jobs={"driver": (1, 1), "workers": (2, 1)}).views()
    assert [(part_of(pod), slice_of(pod)) for pod in jobset] == [("driver", 0), ("workers", 0), ("workers", 1)]
    serve = a.leader_worker_set(groups=2, size=2).views()
    assert [slice_of(pod) for pod in serve] == [0, 0, 1, 1]
    ray = a.ray_cluster(workers=2).views()
    assert [(part_of(pod), slice_of(pod)) for pod in ray] == [("headgroup", None), ("gpu", 0), ("gpu", 1)]
    assert slice_of(a.job().views()[0]) is None


def test_a_finished_pod_is_replaced_by_the_live_one_of_its_position() -> None:
    world = a.job(pods=2)
    failed = a.pod("trainer-0-old", labels=world.pods[0]["metadata"]["labels"], owner=world.workload, phase="Failed")
    kept = without_superseded([PodView.of(failed), *world.views()])
    assert [pod.name for pod in kept] == [pod["metadata"]["name"] for pod in world.pods]


def test_a_finished_pod_without_replacement_stays() -> None:
    world = a.job(pods=2)
    world.pods[0]["status"]["phase"] = "Succeeded"
    assert len(without_superseded(world.views())) == 2


def test_evicted_pods_of_a_deployment_are_superseded_but_loose_pods_never_are() -> None:
    world = a.deployment(pods=2)
    evicted = a.pod("web-5f6c-gone", labels={"app": "web"}, owner=world.parts[0], phase="Failed")
    assert len(without_superseded([*world.views(), PodView.of(evicted)])) == 2
    loose = [PodView.of(a.pod("a")), PodView.of(a.pod("b", phase="Failed"))]
    assert without_superseded(loose) == loose


def test_positions_of_a_restarted_jobset_are_those_of_the_first_attempt() -> None:
    one, other = a.jobset(), a.jobset()
    assert [position(pod) for pod in one.views()] == [position(pod) for pod in other.views()]
