from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.injection import InjectionSettings, controller_of, decide, likeness_of, patch
from mldiagnostics_api.owners import owner_chain
from support import admission
from support import builders as a
from support.admission import LABELLED

Object = dict[str, Any]
Situation = tuple[a.World, Object]

SETTINGS = InjectionSettings(cluster="c", control_plane_url="https://control:8443", control_plane_ca="PEM")


def told(pod: Any, world: a.World) -> list[Any]:
    """The patch for a pod in a world."""
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
def test_pods_of_one_likeness_are_told_the_same(situation: Situation, data: st.DataObject) -> None:
    world, pod = situation
    other = data.draw(admission.broken(pod))
    like, likewise = likeness_of(pod, "ml"), likeness_of(other, "ml")
    assert like is None or like != likewise or told(pod, world) == told(other, world)
    if likewise:
        assert hash(likewise) == hash(likeness_of(copy.deepcopy(other), "ml"))
        assert likewise.controller == controller_of(other, "ml")


@given(admission.situations(), st.integers(0, 999), st.text())
def test_what_tells_siblings_apart_is_not_of_their_likeness(situation: Situation, index: int, value: str) -> None:
    _, pod = situation
    other = copy.deepcopy(pod)
    other["metadata"]["generateName"] = f"trainer-{index}-"
    other["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(index)
    other["spec"]["hostname"] = f"trainer-{index}"
    for container in other["spec"]["containers"]:
        for variable in container.get("env") or ():
            variable["value"] = value
    assert likeness_of(other, "ml") == likeness_of(pod, "ml")


def test_pods_that_are_each_for_themselves_have_none() -> None:
    pod = a.job().pods[0]
    assert likeness_of(pod, "ml")
    lone = a.pod(labels=LABELLED)
    mirror = copy.deepcopy(pod)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    full = copy.deepcopy(pod)
    full["metadata"]["annotations"] = {"note": "x" * 70_000}
    others: tuple[Any, ...] = (lone, mirror, full, {}, None, [])
    assert [likeness_of(other, "ml") for other in others] == [None] * 6


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "env": [{"name": "X" * 20_000, "value": ""}]}]},
        {"containers": [{"name": "a", "env": [{"name": f"X{n}"} for n in range(5_000)]}]},
        {"containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/x" * 10_000}]}]},
        {"volumes": [{"name": "mldiagnostics", "projected": {"sources": [{"secret": {"name": "x" * 20_000}}]}}]},
        {"serviceAccountName": "x" * 20_000},
    ],
    ids=["a long name", "many names", "a long path", "a large volume", "a long account"],
)
def test_pods_that_say_much_are_not_remembered(spec: Object) -> None:
    pod = a.job().pods[0]
    assert likeness_of({**pod, "spec": {**pod["spec"], **spec}}, "ml") is None


def test_an_owner_with_an_endless_name_is_none() -> None:
    pod = a.job().pods[0]
    (owner,) = pod["metadata"]["ownerReferences"]
    owner["apiVersion"] = f"batch/{'v' * 600}"
    assert controller_of(pod, "ml") is None
    assert likeness_of(pod, "ml") is None
