from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.injection.options import InjectionOptions
from mldiagnostics_api.injection.shape import PodShape

POD: dict[str, Any] = {
    "metadata": {},
    "spec": {
        "containers": [{"name": "train"}, {"name": "log"}],
        "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
    },
}


def wishes(
    pod: dict[str, str] | None = None, workload: dict[str, str] | None = None, namespace: dict[str, str] | None = None
) -> InjectionOptions:
    def whole(short: dict[str, str] | None) -> dict[str, str]:
        return {f"diagon.gke.io/{key}": value for key, value in (short or {}).items()}

    return InjectionOptions.of(pod=whole(pod), workload=whole(workload), namespace=whole(namespace))


def chosen(found: InjectionOptions) -> list[str]:
    return [container.name for container in PodShape.of(POD, "ml").containers if found.chooses(container)]


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (None, ["train", "log", "proxy"]),
        ("", ["train", "log", "proxy"]),
        ("train", ["train"]),
        (" train , proxy ", ["train", "proxy"]),
        ("setup", ["setup"]),
        ("*,setup", ["train", "log", "setup", "proxy"]),
        ("other", []),
    ],
)
def test_containers_that_run_are_told_unless_others_are_chosen(annotation: str | None, names: list[str]) -> None:
    annotations = {} if annotation is None else {"inject-containers": annotation}
    assert chosen(wishes(pod=annotations)) == names
    assert chosen(wishes(workload=annotations)) == names


def test_the_nearest_annotation_counts() -> None:
    found = wishes(
        pod={"inject-containers": "train"},
        workload={"inject-containers": "log", "sinks": "jsonl:"},
        namespace={"sinks": "stdout:", "inject-containers": "setup"},
    )
    assert chosen(found) == ["train"]
    assert found.sinks == ("jsonl:",)
    assert wishes(namespace={"sinks": "otlp://c:4317, jsonl:"}).sinks == ("otlp://c:4317", "jsonl:")


@pytest.mark.parametrize("who", ["pod", "workload", "namespace"])
def test_anyone_can_opt_out(who: str) -> None:
    assert wishes(**{who: {"inject": "false"}}).opted_out.startswith(f"the {who} has")
    assert not wishes(**{who: {"inject": "true"}}).opted_out


@pytest.mark.parametrize(
    "annotation",
    [
        {"sinks": "a b"},
        {"sinks": "jsonl:,otlp"},
        {"sinks": "otlp://c:0"},
        {"peer-control-plane": "control:8080"},
        {"peer-control-plane": "http://a b"},
    ],
)
def test_what_cannot_be_read_is_named(annotation: dict[str, str]) -> None:
    (key,) = annotation
    with pytest.raises(ValueError, match=f"diagon.gke.io/{key}"):
        wishes(workload=annotation)


def test_a_namespace_cannot_move_its_pods_to_another_control_plane() -> None:
    assert wishes(workload={"peer-control-plane": "http://c:1"}).peer_url == "http://c:1"
    assert not wishes(namespace={"peer-control-plane": "http://c:1"}).peer_url


@given(st.text())
def test_the_first_published_port_counts(rest: str) -> None:
    assert wishes(pod={"profiler-ports": f" 10001 ,{rest}"}).port == 10001


@pytest.mark.parametrize("ports", ["", ",9999", "x", "-1", "123456", "\u0661", "0", "65536"])
def test_a_first_port_that_is_none_does_not_count(ports: str) -> None:
    assert wishes(pod={"profiler-ports": ports}).port is None
