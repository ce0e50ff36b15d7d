from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.injection import InjectionSettings, controller_of, decide, decision_key, patch
from mldiagnostics_api.workloads.owners import owner_chain
from support.cluster import admission
from support.cluster import builders as a
from support.cluster.admission import LABELLED

Object = dict[str, Any]
Situation = tuple[a.World, Object]

SETTINGS = InjectionSettings(cluster="c", control_plane_url="https://control:8443", control_plane_ca="PEM")


def patch_of(pod: Any, world: a.World) -> list[Any]:
    """Return the patch for a pod in a world."""
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=owner_chain(controller_of(pod, "ml"), admission.reader(world), pods=False),
        settings=SETTINGS,
        now=datetime(2026, 11, 21, tzinfo=UTC),
    )
    return patch(pod, decision) if isinstance(pod, dict) else []


@given(admission.situations(), st.data())
def test_property_pods_of_one_key_get_the_same_patch(situation: Situation, data: st.DataObject) -> None:
    world, pod = situation
    other = data.draw(admission.broken(pod))
    key, other_key = decision_key(pod, "ml"), decision_key(other, "ml")
    assert key is None or key != other_key or patch_of(pod, world) == patch_of(other, world)
    if other_key:
        assert hash(other_key) == hash(decision_key(copy.deepcopy(other), "ml"))
        assert other_key.controller == controller_of(other, "ml")


@given(admission.situations(), st.integers(0, 999), st.text())
def test_property_siblings_have_the_same_key(situation: Situation, index: int, value: str) -> None:
    _, pod = situation
    other = copy.deepcopy(pod)
    other["metadata"]["generateName"] = f"trainer-{index}-"
    other["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
    other["spec"]["hostname"] = f"trainer-{index}"
    for container in other["spec"]["containers"]:
        for variable in container.get("env") or ():
            variable["value"] = value
    assert decision_key(other, "ml") == decision_key(pod, "ml")


def test_pods_that_must_not_be_cached_have_no_key() -> None:
    pod = a.job().pods[0]
    assert decision_key(pod, "ml")
    lone = a.pod(labels=LABELLED)
    mirror = copy.deepcopy(pod)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    full = copy.deepcopy(pod)
    full["metadata"]["annotations"] = {"note": "x" * 70_000}
    others: tuple[Any, ...] = (lone, mirror, full, {}, None, [])
    assert [decision_key(other, "ml") for other in others] == [None] * 6


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "env": [{"name": "X" * 20_000, "value": ""}]}]},
        {"containers": [{"name": "a", "env": [{"name": f"X{n}"} for n in range(5_000)]}]},
        {"containers": [{}] * 200},
        {"containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/x" * 10_000}]}]},
        {"volumes": [{"name": "mldiagnostics", "projected": {"sources": [{"secret": {"name": "x" * 20_000}}]}}]},
        {"serviceAccountName": "x" * 20_000},
    ],
    ids=["a long name", "many names", "many containers", "a long path", "a large volume", "a long account"],
)
def test_pods_with_much_text_have_no_key(spec: Object) -> None:
    pod = a.job().pods[0]
    assert decision_key({**pod, "spec": {**pod["spec"], **spec}}, "ml") is None


def test_a_deeply_nested_volume_has_no_key() -> None:
    pod = a.job().pods[0]
    volume: Any = {}
    for _ in range(100_000):
        volume = {"nested": volume}
    spec = {**pod["spec"], "volumes": [{"name": "mldiagnostics", **volume}]}
    assert decision_key({**pod, "spec": spec}, "ml") is None


def test_an_owner_with_a_very_long_name_has_no_key() -> None:
    pod = a.job().pods[0]
    (owner,) = pod["metadata"]["ownerReferences"]
    owner["apiVersion"] = f"batch/{'v' * 600}"
    assert controller_of(pod, "ml") is None
    assert decision_key(pod, "ml") is None
