from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.workloads.owners import owner_chain, reduced
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.positions import unconfirmed
from support.cluster import builders as a

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LATER = "2026-04-24T04:00:00Z"
INDEX = f"{a.JOB}/job-completion-index"
WORLDS: tuple[Callable[[], a.World], ...] = (
    a.jobset,
    lambda: a.jobset(jobs={"driver": (1, 1), "workers": (2, 2)}),
    a.job,
    a.leader_worker_set,
    a.stateful_set,
    a.training_job,
    lambda: a.training_job("mpi", kind="MPIJob"),
)


def refused(world: a.World) -> dict[str, str]:
    """Return the refused pods by name; every Job of the world is indexed."""
    for job in [part for part in [*world.parts, world.workload] if part and part["kind"] == "Job"]:
        job.setdefault("spec", {"completionMode": "Indexed", "completions": 2})
    owners = {ref: owner and {**owner, **reduced(owner)} for ref, owner in world.owners().items()}
    pods = [PodView.of(pod) for pod in world.pods]
    faults = unconfirmed(pods, {pod.uid: owner_chain(pod.controller, owners.get) for pod in pods})
    return {pod.name: faults[pod.uid] for pod in pods if pod.uid in faults}


def forged(name: str, original: a.Object, *, labels: dict[str, str] | None = None) -> a.Object:
    """Return a later pod with the owner reference of the original, and its labels or others."""
    made = a.pod(name, labels=original["metadata"]["labels"] if labels is None else labels)
    made["metadata"] |= {
        "creationTimestamp": LATER,
        "ownerReferences": copy.deepcopy(original["metadata"]["ownerReferences"]),
    }
    return made


@pytest.mark.parametrize("make", [*WORLDS, a.deployment, a.ray_cluster, lambda: a.ray_cluster(indexed=False)])
def test_the_pods_that_controllers_create_are_confirmed(make: Callable[[], a.World]) -> None:
    assert refused(make()) == {}


@given(st.sampled_from(WORLDS), st.data())
def test_property_a_forged_pod_is_refused_and_no_other(make: Callable[[], a.World], data: st.DataObject) -> None:
    world = make()
    owners = [world.workload, *world.parts, *world.pods]
    by = a.pod(owner=data.draw(st.sampled_from(owners)))
    labels_of = data.draw(st.sampled_from(world.pods))
    labels: dict[str, str] = dict(labels_of["metadata"]["labels"])
    changed: Sequence[str] = data.draw(st.lists(st.sampled_from(sorted(labels) or ["x"]), max_size=2))
    for label in changed:
        labels[label] = data.draw(st.sampled_from(["0", "00", "1", "7", "-1", "x"]))
    for label in data.draw(st.lists(st.sampled_from(sorted(labels) or ["x"]), max_size=2)):
        labels.pop(label, None)
    world.pods.append(forged("forged", by, labels=labels))
    assert set(refused(world)) == {"forged"}


def test_the_reason_names_what_the_controller_requires() -> None:
    world = a.job()
    first = world.pods[0]
    labels = first["metadata"]["labels"]
    world.pods += [
        forged("unlabelled", first, labels={INDEX: "0"}),
        forged("copy", first),
        forged("beyond", first, labels=labels | {INDEX: "2"}),
        forged("other-family", first, labels=labels | {f"{a.JOBSET}/job-index": "0"}),
    ]
    reasons = refused(world)
    assert "Job trainer does not select it" in reasons["unlabelled"]
    assert f"pod {first['metadata']['name']} has the same position in Job trainer and is older" in reasons["copy"]
    assert "Job trainer has no completion index '2'" in reasons["beyond"]
    assert "no JobSet controls it" in reasons["other-family"]
    assert len(reasons) == 4


def test_a_job_that_the_jobset_does_not_declare_gives_no_position() -> None:
    world = a.jobset()
    world.workload["spec"] = {"replicatedJobs": [{"name": "workers", "replicas": 1}]}  # type: ignore[index]
    job = copy.deepcopy(world.parts[0])
    job["metadata"] |= {"name": "trainer-workers-1", "uid": "forged"}
    job["metadata"]["labels"] |= {f"{a.JOBSET}/job-index": "1"}
    labels = world.pods[0]["metadata"]["labels"] | job["metadata"]["labels"] | {f"{a.JOB}/controller-uid": "forged"}
    world.parts.append(job)
    world.pods.append(a.pod("forged", labels=labels, owner=job))
    assert refused(world) == {"forged": "JobSet trainer has no job workers-1"}


def test_a_pod_that_replaces_a_finished_one_is_confirmed() -> None:
    world = a.job()
    world.pods[0]["status"]["phase"] = "Failed"
    world.pods.append(forged("trainer-0-again", world.pods[0]))
    assert refused(world) == {}


def test_two_heads_of_a_ray_cluster_are_one_too_many() -> None:
    world = a.ray_cluster()
    world.pods.append(forged("forged", world.pods[0]))
    assert set(refused(world)) == {"forged"}
