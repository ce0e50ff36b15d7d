from __future__ import annotations

import datetime as dt
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import identity as sdk_identity
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.workloads.kinds import WORKLOADS, workload_of
from mldiagnostics_api.workloads.owners import WorkloadRun, lone_run, owner_chain, run_of
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.ranking import slice_of
from mldiagnostics_api.workloads.variables import (
    InjectedIdentity,
    InjectionSettings,
    control_plane_variables,
    variable_names,
    variables,
)
from support.cluster import builders as a
from support.cluster.kubelet import expanded
from support.cluster.strategies import dns_labels, dns_subdomains, instants, uids

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS = InjectionSettings(cluster="projects/p/locations/l/clusters/c1")
label_values = st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?)?", fullmatch=True)
label_sets = st.dictionaries(
    st.from_regex(r"([a-z]{1,9}\.io/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,9}[A-Za-z0-9])?", fullmatch=True), label_values
)


@st.composite
def identities(draw: st.DrawFn) -> InjectedIdentity:
    """Draw a run of any supported kind."""
    workload = draw(st.sampled_from([workload for workload in WORKLOADS if not workload.groups]))
    metadata = {
        "name": draw(dns_subdomains()),
        "uid": "" if workload.kind == "Pod" else draw(uids()),
        "creationTimestamp": format_time(draw(instants())),
        "labels": draw(label_sets),
    }
    body = {"apiVersion": workload.api_version, "kind": workload.kind, "metadata": metadata}
    run = WorkloadRun(body, draw(st.none() | dns_labels()))
    return InjectedIdentity.of(run, workload, cluster=draw(st.sampled_from(["c1", SETTINGS.cluster])), namespace="ml")


def values(identity: InjectedIdentity, settings: InjectionSettings = SETTINGS, **changes: Any) -> dict[str, str]:
    """Return the variables with a value by name, as the kubelet expands them."""
    environment = variables(identity, settings, **{"pod_labels": {}} | changes)
    return {v["name"]: expanded(v["value"], {"MLDIAG_POD_UID": "pod-uid"}) for v in environment if "value" in v}


def fields(identity: InjectedIdentity, pod_labels: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that refer to labels by name, as the kubelet resolves them."""
    environment = variables(identity, SETTINGS, pod_labels=pod_labels)
    paths = {v["name"]: v["valueFrom"]["fieldRef"]["fieldPath"] for v in environment if "valueFrom" in v}
    labels = {name: re.fullmatch(r"metadata\.labels\['(.+)'\]", path) for name, path in paths.items()}
    return {name: pod_labels.get(label[1], "") for name, label in labels.items() if label}


def read_as_peer(metadata: str) -> tuple[dt.datetime, dict[str, str]]:
    """Parse as the peer SDK does: it cuts the last character of the time, and splits labels at every comma."""
    content = json.loads(metadata)
    assert content["creation-timestamp"].endswith("Z")
    created = dt.datetime.fromisoformat(content["creation-timestamp"])
    pairs = [pair.partition("=") for pair in content.get("associated-labels", "").split(",") if pair]
    return created, {key.strip(): value.strip() for key, _, value in pairs}


@given(identities())
def test_the_peer_reads_the_same_run(identity: InjectedIdentity) -> None:
    environment = values(identity)
    identifier = json.loads(environment["GKE_DIAGON_IDENTIFIER"])
    created, labels = read_as_peer(environment["GKE_DIAGON_METADATA"])
    assert labels == identity.labels
    assert json.loads(environment["GKE_DIAGON_METADATA"]).get("parent-workload") == identity.group
    assert identifier.keys() == {"metadata.name", "metadata.kind", "clustername", "namespace"}
    run = sdk_identity.run_id(
        cluster=identifier["clustername"],
        namespace=identifier["namespace"],
        kind=identifier["metadata.kind"],
        name=identifier["metadata.name"],
        created=created,
    )
    assert run == environment["MLDIAG_RUN_ID"] == identity.run_id


@given(identities())
def test_the_workload_is_complete(identity: InjectedIdentity) -> None:
    assert json.loads(values(identity)["MLDIAG_WORKLOAD"]) == {
        "apiVersion": identity.api_version,
        "kind": identity.workload.kind,
        "name": identity.name,
        "namespace": "ml",
        "uid": identity.uid or "pod-uid",
        "creationTimestamp": format_time(identity.created),
        "labels": identity.labels,
    }


texts = st.text("$()A") | st.text()


@given(identities(), texts, texts, texts)
def test_no_value_is_expanded(identity: InjectedIdentity, storage: str, view: str, url: str) -> None:
    settings = InjectionSettings(cluster="c1", storage=storage, view_url=view, control_plane_url=url)
    environment = values(identity, settings)
    assert environment.get("MLDIAG_STORAGE", "") == storage
    assert environment.get("MLDIAG_VIEW_URL", "") == view
    (variable,) = control_plane_variables(settings)
    assert expanded(variable["value"], {}) == url


@given(st.dictionaries(st.text(), st.text() | st.none() | st.integers()))
def test_only_valid_labels_are_included(labels: dict[str, Any]) -> None:
    run = WorkloadRun(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": a.thing("j", kind="Job", api_version="")["metadata"]}
    )
    fixed = {"team": "infra", "a,b": "c", "d": "e,f=g", "diagon.gke.io/run": "x"}
    run.workload["metadata"]["labels"] = labels | fixed
    workload = workload_of("Job", "batch/v1")
    assert workload is not None
    identity = InjectedIdentity.of(run, workload, cluster="c1", namespace="ml")
    _, read = read_as_peer(values(identity)["GKE_DIAGON_METADATA"])
    assert read == dict(identity.labels)
    assert read["team"] == "infra"
    assert not {"a,b", "diagon.gke.io/run"} & read.keys()
    assert read.keys() <= labels.keys() | fixed.keys()


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (a.job(pods=3), {"MLDIAG_RANK": "2"}),
        (a.jobset(jobs={"workers": (2, 3)}), {"MLDIAG_SLICE": "1", "MLDIAG_HOST_INDEX": "2", "MLDIAG_ATTEMPT": ""}),
        (a.leader_worker_set(), {"MLDIAG_SLICE": "1", "MLDIAG_HOST_INDEX": "2"}),
        (a.ray_cluster(), {"MLDIAG_SLICE": "2", "MLDIAG_HOST_INDEX": ""}),
        (a.stateful_set(), {"MLDIAG_RANK": ""}),
        (a.deployment(), {}),
        (a.training_job(), {"MLDIAG_HOST_INDEX": "1"}),
        (a.training_job(kind="JAXJob"), {"MLDIAG_RANK": "1"}),
    ],
)
def test_the_position_comes_from_the_controllers_labels(world: a.World, expected: dict[str, str]) -> None:
    pod = PodView.of(world.pods[-1])
    environment = fields(identity_of(world), pod.labels)
    assert environment == expected
    if environment.get("MLDIAG_SLICE"):
        assert int(environment["MLDIAG_SLICE"]) == slice_of(pod)


def test_the_index_in_the_only_job_of_a_jobset_is_the_rank() -> None:
    world = a.jobset(jobs={"workers": (1, 4)})
    labels = world.pods[3]["metadata"]["labels"]
    assert "MLDIAG_RANK" not in fields(identity_of(world), labels)
    one, two = (labels | {"jobset.sigs.k8s.io/global-replicas": jobs} for jobs in "12")
    assert fields(identity_of(world), one)["MLDIAG_RANK"] == "3"
    assert "MLDIAG_RANK" not in fields(identity_of(world), two)


def test_without_a_label_the_attempt_is_0() -> None:
    assert values(identity_of(a.job()))["MLDIAG_ATTEMPT"] == "0"


def test_the_peers_self_hosted_mode_is_set_only_on_request() -> None:
    identity = identity_of(a.jobset())
    environment = values(identity, peer_url="http://control:8080")
    assert environment["DIAGON_BASE_URL"] == "http://control:8080"
    assert environment["DIAGON_CLUSTER_ID"] == "c1"
    assert environment["DIAGON_WORKLOAD_ID"] == identity.run_id
    assert not [name for name in values(identity) if name.startswith("DIAGON_") or name == "POD_NAMESPACE"]


def test_settings_become_variables_only_if_set() -> None:
    settings = InjectionSettings(
        cluster="c1", storage="gs://b/runs", sinks=("jsonl:", "otlp://c:4317"), view_url="https://view"
    )
    environment = values(identity_of(a.job()), settings)
    assert (environment["MLDIAG_STORAGE"], environment["MLDIAG_SINKS"], environment["MLDIAG_VIEW_URL"]) == (
        "gs://b/runs",
        "jsonl:,otlp://c:4317",
        "https://view",
    )
    assert values(identity_of(a.job()), settings, sinks=("stdout:",))["MLDIAG_SINKS"] == "stdout:"
    assert not {"MLDIAG_STORAGE", "MLDIAG_SINKS", "MLDIAG_VIEW_URL"} & values(identity_of(a.job())).keys()


def test_the_names_of_all_variables_are_known() -> None:
    settings = InjectionSettings(cluster="c1", control_plane_url="https://control", control_plane_ca="PEM")
    names = variable_names(identity_of(a.job()), settings, pod_labels={})
    assert names[-3:] == ("MLDIAG_PROFILER_PORT", "MLDIAG_CONTROL_PLANE_URL", "MLDIAG_CONTROL_PLANE_CA")
    assert len(set(names)) == len(names)
    assert "MLDIAG_CONTROL_PLANE_URL" not in variable_names(identity_of(a.job()), SETTINGS, pod_labels={})


@pytest.mark.parametrize(
    ("metadata", "cluster", "fault"),
    [
        ({"creationTimestamp": "2026-04-24T03:04:05+00:00"}, "c1", "creation time"),
        ({"creationTimestamp": None}, "c1", "creation time"),
        ({"creationTimestamp": "yesterdayZ"}, "c1", "yesterday"),
        ({"name": "Ünï"}, "c1", r"Job: '\xdcn\xef' is not a valid object name"),
        ({"name": None}, "c1", "Job: None is not a valid object name"),
        ({}, "", r"cluster\.name"),
        ({}, "projects/p/clusters/", r"cluster\.name"),
    ],
)
def test_an_incomplete_identity_is_rejected_with_the_reason(metadata: dict[str, Any], cluster: str, fault: str) -> None:
    body = a.thing("j", kind="Job", api_version="batch/v1")
    body["metadata"] |= metadata
    workload = workload_of("Job", "batch/v1")
    assert workload is not None
    with pytest.raises(ValueError, match=re.escape(fault) if "\\x" in fault else fault):
        InjectedIdentity.of(WorkloadRun(body), workload, cluster=cluster, namespace="ml")


@given(instants(), st.integers(-200, 200))
def test_a_lone_pods_annotated_time_counts_if_it_is_near(around: dt.datetime, seconds: int) -> None:
    around = around.replace(microsecond=0)
    stated = format_time(around + dt.timedelta(seconds=seconds))
    run = lone_run("p", {}, {"diagon.gke.io/run-created": stated}, around)
    expected = stated if abs(seconds) <= 60 else format_time(around)
    assert run.workload["metadata"]["creationTimestamp"] == expected


@pytest.mark.parametrize("stated", ["", "soonZ", "2026-04-24T03:04:05", "9" * 400 + "Z"])
def test_an_invalid_annotated_time_does_not_count(stated: str) -> None:
    around = dt.datetime(2026, 4, 24, 3, 4, 5, tzinfo=dt.UTC)
    run = lone_run("p", {}, {"diagon.gke.io/run-created": stated}, around)
    assert run.workload["metadata"]["creationTimestamp"] == "2026-04-24T03:04:05Z"


def identity_of(world: a.World) -> InjectedIdentity:
    """Return the identity of the run of a world's pods."""
    view = PodView.of(world.pods[0])
    run = run_of(owner_chain(view.controller, world.owners().get))
    assert run is not None
    workload = workload_of(run.kind, run.workload["apiVersion"])
    assert workload is not None
    return InjectedIdentity.of(run, workload, cluster=SETTINGS.cluster, namespace="ml")
