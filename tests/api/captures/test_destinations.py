from __future__ import annotations

from datetime import datetime, timedelta

import jsonpatch
import pytest
from mldiagnostics_api.captures.destinations import common_directory, destinations
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.injection import InjectionSettings, decide, patch
from mldiagnostics_api.workloads.owners import WorkloadRun, owner_chain, run_of
from mldiagnostics_api.workloads.pods import PodView
from support.cluster import builders as a

ROOT = Location.parse("gs://profiles/root")
ON = {"managed-mldiagnostics-gke": "true"}
CHECK_ID = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"


def with_runs(*worlds: a.World) -> list[tuple[PodView, WorkloadRun | None]]:
    return [(pod, run_of(owner_chain(pod.controller, world.owners().get))) for world in worlds for pod in world.views()]


def directories(pods: list[tuple[PodView, WorkloadRun | None]], *, explicit: bool = False, **labels: str) -> list[str]:
    by_pod = destinations(pods, root=ROOT, explicit=explicit, cluster="p/train-cluster", namespace_labels=labels)
    return [str(by_pod[pod.uid].directory) for pod, _ in pods]


def test_a_run_has_the_directory_of_its_id() -> None:
    assert set(directories(with_runs(a.jobset(labels=ON)))) == {f"gs://profiles/root/{CHECK_ID}"}


def test_a_namespace_label_makes_a_run_too() -> None:
    pods = with_runs(a.jobset())
    by_pod = destinations(pods, root=ROOT, explicit=False, cluster="train-cluster", namespace_labels=ON)
    assert {home.run_id for home in by_pod.values()} == {CHECK_ID}


def test_a_workload_that_is_not_a_run_has_the_directory_of_its_name() -> None:
    assert set(directories(with_runs(a.jobset(), a.deployment()))) == {
        "gs://profiles/root/ml/trainer",
        "gs://profiles/root/ml/web",
    }


def test_loose_pods_share_the_directory_of_the_first() -> None:
    pods: list[tuple[PodView, WorkloadRun | None]] = [(PodView.of(a.pod(name)), None) for name in ("b", "a")]
    assert directories(pods) == ["gs://profiles/root/ml/b"] * 2


def test_a_lone_pod_has_the_directory_of_its_injected_run_even_without_annotations() -> None:
    pod = a.pod("notebook", labels=ON)
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=(),
        settings=InjectionSettings(cluster="p/train-cluster"),
        now=datetime.fromisoformat(a.CREATED) - timedelta(seconds=3),
    )
    injected = jsonpatch.apply_patch(pod, patch(pod, decision))
    view = PodView.of(injected)
    run_id = decision.annotations["diagon.gke.io/run-id"]
    assert directories([(view, view.lone_run)]) == [f"gs://profiles/root/{run_id}"]
    view = PodView.of({**injected, "metadata": {**injected["metadata"], "annotations": {}}})
    assert directories([(view, view.lone_run)]) == [f"gs://profiles/root/{run_id}"]
    not_injected = PodView.of(pod)
    assert directories([(not_injected, not_injected.lone_run)]) != [f"gs://profiles/root/{run_id}"]


def test_a_pod_without_the_label_or_with_a_controller_is_not_a_run() -> None:
    assert PodView.of(a.pod("notebook")).lone_run is None
    assert [pod.lone_run for pod in a.job(labels=ON).views()] == [None, None]
    assert PodView.of(a.pod(labels=ON, owner=a.thing("j", kind="Job", api_version="batch/v1"))).lone_run is None


def test_an_explicit_location_is_the_directory_itself() -> None:
    pods = with_runs(a.jobset(labels=ON), a.deployment())
    assert set(directories(pods, explicit=True)) == {str(ROOT)}
    by_pod = destinations(pods, root=ROOT, explicit=True, cluster="train-cluster", namespace_labels={})
    assert {home.run_id for home in by_pod.values()} == {CHECK_ID, None}


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        ([], "gs://profiles/root"),
        (["gs://profiles/root/a"], "gs://profiles/root/a"),
        (["gs://profiles/root/a", "gs://profiles/root/ab"], "gs://profiles/root"),
        (["gs://profiles/root/ml/a", "gs://profiles/root/ml/b"], "gs://profiles/root/ml"),
    ],
)
def test_the_common_parent_of_directories(paths: list[str], common: str) -> None:
    assert str(common_directory(map(Location.parse, paths), root=ROOT)) == common
