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


def options(
    pod: dict[str, str] | None = None, workload: dict[str, str] | None = None, namespace: dict[str, str] | None = None
) -> InjectionOptions:
    def whole(short: dict[str, str] | None) -> dict[str, str]:
        return {f"diagon.gke.io/{key}": value for key, value in (short or {}).items()}

    return InjectionOptions.of(pod=whole(pod), workload=whole(workload), namespace=whole(namespace))


def chosen(parsed: InjectionOptions) -> list[str]:
    return [container.name for container in PodShape.of(POD, "ml").containers if parsed.chooses(container)]


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
def test_running_containers_are_chosen_by_default(annotation: str | None, names: list[str]) -> None:
    annotations = {} if annotation is None else {"inject-containers": annotation}
    assert chosen(options(pod=annotations)) == names
    assert chosen(options(workload=annotations)) == names


def test_the_nearest_annotation_counts() -> None:
    parsed = options(
        pod={"inject-containers": "train"},
        workload={"inject-containers": "log", "sinks": "jsonl:"},
        namespace={"sinks": "stdout:", "inject-containers": "setup"},
    )
    assert chosen(parsed) == ["train"]
    assert parsed.sinks == ("jsonl:",)
    assert options(namespace={"sinks": "otlp://c:4317, jsonl:"}).sinks == ("otlp://c:4317", "jsonl:")


@pytest.mark.parametrize("owner", ["pod", "workload", "namespace"])
def test_anyone_can_opt_out(owner: str) -> None:
    assert options(**{owner: {"inject": "false"}}).opted_out.startswith(f"the {owner} has")
    assert not options(**{owner: {"inject": "true"}}).opted_out


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
def test_the_error_names_the_annotation(annotation: dict[str, str]) -> None:
    (key,) = annotation
    with pytest.raises(ValueError, match=f"diagon.gke.io/{key}"):
        options(workload=annotation)


def test_a_namespace_cannot_move_its_pods_to_another_control_plane() -> None:
    assert options(workload={"peer-control-plane": "http://c:1"}).peer_url == "http://c:1"
    assert not options(namespace={"peer-control-plane": "http://c:1"}).peer_url


@given(st.text())
def test_the_first_published_port_counts(rest: str) -> None:
    assert options(pod={"profiler-ports": f" 10001 ,{rest}"}).port == 10001


@pytest.mark.parametrize("ports", ["", ",9999", "x", "-1", "123456", "\u0661", "0", "65536"])
def test_an_invalid_first_port_does_not_count(ports: str) -> None:
    assert options(pod={"profiler-ports": ports}).port is None
