from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.workloads.owners import ObjectReference, missing_owners, missing_whole, owner_chain, run_of
from mldiagnostics_api.workloads.pods import PodView
from support.cluster import admission
from support.cluster import builders as a

KINDS = st.sampled_from(
    [("Job", "batch/v1"), ("JobSet", "jobset.x-k8s.io/v1alpha2"), ("CronJob", "batch/v1"), ("Widget", "example.com/v1")]
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[ObjectReference, dict[ObjectReference, Any]]:
    """Objects that own each other at random: cycles, wrong uids, missing owners, unknown kinds."""
    size = draw(st.integers(1, 6))
    kinds = [draw(KINDS) for _ in range(size)]
    names = [
        ObjectReference(api_version, kind, "ml", f"o{n}", f"uid-{n}") for n, (kind, api_version) in enumerate(kinds)
    ]
    objects: dict[ObjectReference, Any] = {}
    for reference in names:
        owner = draw(st.sampled_from([*names, None]))
        metadata: dict[str, Any] = {"name": reference.name, "uid": draw(st.sampled_from([reference.uid, "stale"]))}
        if owner:
            controller = draw(st.booleans())
            metadata["ownerReferences"] = [
                a.owned(owner.name, owner.kind, owner.api_version, uid=owner.uid, controller=controller)
            ]
        objects[reference] = draw(st.sampled_from([{"metadata": metadata}, {"metadata": metadata}, None]))
    return names[0], objects


@given(graphs())
def test_a_chain_ends_and_every_owner_in_it_is_the_one_referred_to(
    graph: tuple[ObjectReference, dict[ObjectReference, Any]],
) -> None:
    first, objects = graph
    chain = owner_chain(first, objects.get)
    uids = [owner["metadata"]["uid"] for owner in chain]
    assert len(set(uids)) == len(uids)
    assert "stale" not in uids
    assert {owner["kind"] for owner in chain} <= {"Job", "JobSet"}
    references = [first, *(ObjectReference.to_controller(owner["metadata"], "ml") for owner in chain)]
    assert uids == [reference.uid for reference in references[: len(uids)] if reference]


@given(graphs())
def test_property_fetching_missing_owners_ends_with_the_whole_chain(
    graph: tuple[ObjectReference, dict[ObjectReference, Any]],
) -> None:
    first, objects = graph
    known: dict[ObjectReference, Any] = {}
    while missing := missing_owners([first], known):
        assert missing.isdisjoint(known)
        known |= {reference: objects.get(reference) for reference in missing}
    assert owner_chain(first, known.get) == owner_chain(first, objects.get)


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (a.jobset(), "JobSet"),
        (a.job(), "Job"),
        (a.leader_worker_set(), "LeaderWorkerSet"),
        (a.ray_cluster(), "RayCluster"),
        (a.ray_cluster().owned_by("RayJob", "ray", "ray.io/v1"), "RayJob"),
        (a.deployment(), "Deployment"),
        (a.stateful_set(), "StatefulSet"),
        (a.training_job(), "PyTorchJob"),
        (a.jobset().owned_by("TrainJob", "trainer", "trainer.kubeflow.org/v1alpha1"), "TrainJob"),
        (a.job().owned_by("Widget", "w", "example.com/v1"), "Job"),
    ],
)
def test_the_topmost_known_owner_is_the_run(world: a.World, kind: str) -> None:
    for view in world.views():
        run = run_of(owner_chain(view.controller, world.owners().get))
        assert run is not None
        assert run.kind == kind
        assert run.group is None


def test_a_cronjob_groups_its_jobs_and_is_never_read() -> None:
    world = a.job("nightly-123").owned_by("CronJob", "nightly", "batch/v1")
    view = PodView.of(world.pods[0])
    job = next(part for part in world.parts if part["kind"] == "Job")
    reference = view.controller
    assert reference is not None
    known = {reference: job}
    assert not missing_owners([reference], known)
    run = run_of(owner_chain(reference, known.get))
    assert run is not None
    assert (run.kind, run.name, run.group) == ("Job", "nightly-123", "nightly")


def test_a_raycronjob_groups_its_rayjobs() -> None:
    rayjob = a.ray_cluster().owned_by("RayJob", "nightly-x7k2p", "ray.io/v1")
    world = rayjob.owned_by("RayCronJob", "nightly", "ray.io/v1")
    run = run_of(owner_chain(PodView.of(world.pods[0]).controller, world.owners().get))
    assert run is not None
    assert (run.kind, run.name, run.group) == ("RayJob", "nightly-x7k2p", "nightly")


def test_metadata_is_enough_to_find_the_run() -> None:
    world = a.deployment()
    bare = {
        reference: {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": owner["metadata"]}
        for reference, owner in world.owners().items()
        if owner
    }
    run = run_of(owner_chain(PodView.of(world.pods[0]).controller, bare.get))
    assert run is not None
    assert (run.kind, run.workload["apiVersion"]) == ("Deployment", "apps/v1")


def test_a_pod_without_controller_has_no_owners() -> None:
    loose = a.pod()
    loose["metadata"]["ownerReferences"] = [a.owned("trainer", "Job", "batch/v1", controller=False)]
    assert PodView.of(loose).controller is None
    assert run_of(owner_chain(None, {}.get)) is None


def test_a_recreated_owner_of_the_same_name_does_not_count() -> None:
    world = a.job()
    assert world.workload is not None
    recreated = a.thing("trainer", kind="Job", api_version="batch/v1", uid="another")
    view = PodView.of(world.pods[0])
    assert owner_chain(view.controller, lambda _: recreated) == ()
    assert len(owner_chain(view.controller, lambda _: world.workload)) == 1


def walked(world: a.World, pod: Any) -> list[tuple[str, str]]:
    """Return the owners of a pod without reading pods."""
    chain = owner_chain(PodView.of(pod).controller, admission.reader(world), pods=False)
    return [(owner["kind"], owner["metadata"]["name"]) for owner in chain]


def test_workers_of_a_leader_worker_set_are_found_without_reading_their_leader() -> None:
    world = a.leader_worker_set()
    leader, worker = world.pods[0], world.pods[1]
    assert walked(world, leader) == [("StatefulSet", "serve"), ("LeaderWorkerSet", "serve")]
    assert walked(world, worker) == [("StatefulSet", "serve-0"), ("LeaderWorkerSet", "serve")]


def test_a_leader_worker_set_that_is_younger_than_its_part_is_another_one() -> None:
    world = a.leader_worker_set()
    assert world.workload is not None
    world.workload["metadata"]["creationTimestamp"] = "2026-04-24T03:04:06Z"
    assert walked(world, world.pods[1]) == [("StatefulSet", "serve-0")]


def test_without_the_label_no_owner_of_a_pod_is_read() -> None:
    world = a.leader_worker_set()
    for part in world.parts:
        part["metadata"]["labels"] = {}
    assert walked(world, world.pods[1]) == [("StatefulSet", "serve-0")]
    owned_by_pod = a.pod(owner=world.pods[0])
    assert walked(world, owned_by_pod) == []


@given(graphs())
def test_property_pods_are_never_missing_without_permission_to_read_them(
    graph: tuple[ObjectReference, dict[ObjectReference, Any]],
) -> None:
    first, objects = graph
    pod = ObjectReference("v1", "Pod", "ml", "leader", "uid-leader")
    for owner in objects.values():
        if owner:
            owner["metadata"]["ownerReferences"] = [a.owned("leader", "Pod", "v1", uid=pod.uid)]
            owner["metadata"]["creationTimestamp"] = a.CREATED
    known: dict[ObjectReference, Any] = {}
    while missing := missing_owners([first, pod], known, pods=False):
        assert pod not in missing
        known |= {reference: objects.get(reference) for reference in missing}


def test_an_empty_uid_does_not_match() -> None:
    world = a.job()
    forged = ObjectReference("batch/v1", "Job", "ml", "trainer", "")
    assert owner_chain(forged, lambda _: world.workload) == ()


@pytest.mark.parametrize("kind", ["Job", "JobSet", "TrainJob"])
def test_a_part_of_a_deleted_workload_has_a_missing_owner(kind: str) -> None:
    world = a.jobset().owned_by("TrainJob", "trainer", "trainer.kubeflow.org/v1alpha1")
    first = PodView.of(world.pods[0]).controller
    owners = world.owners()
    assert missing_whole(first, owner_chain(first, owners.get)) is None
    left = {reference: None if reference.kind == kind else owner for reference, owner in owners.items()}
    missing = missing_whole(first, owner_chain(first, left.get))
    assert missing is not None
    assert missing.kind == kind


def test_an_owner_that_is_never_a_run_is_not_missing() -> None:
    for world in (
        a.job().owned_by("CronJob", "nightly", "batch/v1"),
        a.job().owned_by("Widget", "w", "example.com/v1"),
    ):
        first = PodView.of(world.pods[0]).controller
        job = {reference: owner for reference, owner in world.owners().items() if reference.kind == "Job"}
        assert missing_whole(first, owner_chain(first, job.get)) is None
    assert missing_whole(None, ()) is None
