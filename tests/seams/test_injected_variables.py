"""Each value that chart, annotation and webhook hand to a pod has its documented effect there, without a complaint.

The values go the whole way: the rendered chart, the webhook's own configuration, the patch of a pod, the kubelet's
resolution, a real program that begins a run. The table of variables is the product's: a new variable needs a case.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.certificates import make_certificates
from mldiagnostics.identity import run_id
from mldiagnostics.sink_urls import SCHEMES
from mldiagnostics_api import names
from mldiagnostics_api.owners import WorkloadRun
from mldiagnostics_api.variables import (
    InjectedIdentity,
    InjectionSettings,
    control_plane_variables,
    profiler_port,
    variables,
)
from mldiagnostics_api.workloads import WORKLOADS
from support import builders as a
from support.injected_programs import Left, injected, run_in
from support.jax_programs import free_port
from support.logging_server import logging_server
from support.receivers import grpc_receiver, http_receiver

if TYPE_CHECKING:
    from collections.abc import Callable

CREATED = dt.datetime(2026, 4, 24, 3, 4, 5, tzinfo=dt.UTC)
CLUSTER = "projects/p/locations/l/clusters/train"
VIEW = "https://view.example.com/$(HOME)"
CONTROL_PLANE = "https://control.ml.svc:8443"
PEER_CONTROL_PLANE = "http://control.ml.svc:8080"
FULL = InjectionSettings(
    cluster=CLUSTER,
    storage="gs://b",
    sinks=("jsonl:",),
    view_url=VIEW,
    control_plane_url=CONTROL_PLANE,
    control_plane_ca="PEM",
    profiler_port=9012,
)

NOT_USED_YET = {
    "MLDIAG_CONTROL_PLANE_URL": "MLDIAG_CONTROL_PLANE_URL",
    "MLDIAG_CONTROL_PLANE_CA": "MLDIAG_CONTROL_PLANE_URL",
    "DIAGON_BASE_URL": "DIAGON_BASE_URL",
    "DIAGON_CLUSTER_ID": "DIAGON_BASE_URL",
    "DIAGON_WORKLOAD_ID": "DIAGON_BASE_URL",
}
"""Variables without an effect in the SDK -> the variable of the one warning that says so."""

NEED_A_RUN_OF_THEIRS = {"mlflow", "wandb"}
"""Sinks that add to what the program has begun itself; tests/sdk/integrations has real programs for them."""


# Situations -----------------------------------------------------------------------------------------------------------


def one_job(*, attempt: str = "3") -> a.World:
    """A JobSet of one Job with three pods, which makes the completion index the rank."""
    world = a.jobset(jobs={"workers": (1, 3)}, labels={"team": "infra"})
    for pod in world.pods:
        pod["metadata"]["labels"] |= {f"{a.JOBSET}/restart-attempt": attempt, f"{a.JOBSET}/global-replicas": "1"}
    return world


def chart_values(folder: Path) -> dict[str, Any]:
    return {
        "cluster.name": CLUSTER,
        "storage": f"{folder}/runs-$(POD_NAME)",
        "viewUrl": VIEW,
        "profilerPort": free_port(),
    }


def everything(folder: Path) -> Left:
    """The last pod of three."""
    return run_in(injected(chart_values(folder), one_job()), folder)


def leader(folder: Path) -> Left:
    """The first pod, which speaks for the run."""
    return run_in(injected(chart_values(folder), one_job(), 0), folder)


def slices(folder: Path) -> Left:
    """A pod of the second of two slices."""
    return run_in(injected(chart_values(folder), a.jobset(jobs={"workers": (2, 3)})), folder)


def without_ours(folder: Path) -> Left:
    """A program that has only what Google's SDK reads."""
    without = ("MLDIAG_RUN_ID", "MLDIAG_WORKLOAD", "MLDIAG_NAMESPACE")
    return run_in(injected(chart_values(folder), one_job()), folder, without=without)


def control_plane(folder: Path) -> Left:
    ca = make_certificates(folder / "certificates", hosts=["control"]).ca.read_text()
    values = chart_values(folder) | {"controlPlane.url": CONTROL_PLANE, "controlPlane.ca": ca}
    return run_in(injected(values, one_job()), folder)


def peer(folder: Path) -> Left:
    """A workload whose annotation puts Google's SDK in its self-hosted mode."""
    annotations = {names.PEER_URL_ANNOTATION: PEER_CONTROL_PLANE}
    without = ("MLDIAG_NAMESPACE",)
    return run_in(injected(chart_values(folder), one_job(), annotations=annotations), folder, without=without)


def annotated(folder: Path) -> Left:
    values = chart_values(folder) | {"sinks": ["stdout:"]}
    sinks = f"jsonl:, tensorboard:{folder}/curves"
    return run_in(injected(values, one_job(), annotations={names.SINKS_ANNOTATION: sinks}), folder)


SITUATIONS = [everything, leader, slices, without_ours, control_plane, peer, annotated]
Situation = "Callable[[Path], Left]"


@pytest.fixture(scope="module")
def left_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Left]:
    """What the program of a situation leaves; it runs once."""
    done: dict[Any, Left] = {}

    def left(situation: Any) -> Left:
        if situation not in done:
            done[situation] = situation(tmp_path_factory.mktemp(situation.__name__))
        return done[situation]

    return left


# Effects --------------------------------------------------------------------------------------------------------------


def expected_id() -> str:
    return run_id(cluster="train", namespace="ml", kind="JobSet", name="trainer", created=CREATED)


def names_the_host(left: Left) -> bool:
    return bool(left.process["host"] == left.pod.object["metadata"]["name"])


def records_the_pod(left: Left) -> bool:
    return bool(left.process["podUid"] == left.pod.object["metadata"]["uid"])


def records_the_node(left: Left) -> bool:
    return bool(left.process["node"] == left.pod.object["spec"]["nodeName"])


def has_the_namespace(left: Left) -> bool:
    return bool(left.reported["namespace"] == "ml")


def is_the_run(left: Left) -> bool:
    return bool(left.reported["run_id"] == expected_id() == Path(left.reported["directory"]).name)


def records_the_workload(left: Left) -> bool:
    workload = left.document["identity"]["workload"]
    return bool((workload["name"], workload["uid"]) == ("trainer", a.uid_of("JobSet", "trainer")))


def knows_the_workload_by_google(left: Left) -> bool:
    workload = left.reported["workload"]
    return bool((workload["kind"], workload["cluster"], workload["labels"]) == ("JobSet", CLUSTER, {"team": "infra"}))


def has_the_rank(left: Left) -> bool:
    return left.reported["rank"] == 2 and {record.rank for record in left.records} == {2}


def is_in_the_slice(left: Left) -> bool:
    return bool(left.process["slice"] == 1)


def is_the_host_of_its_slice(left: Left) -> bool:
    return bool(left.process["hostIndex"] == 2)


def is_the_attempt(left: Left) -> bool:
    return {record.attempt for record in left.records} == {3}


def writes_into_the_storage(left: Left) -> bool:
    return left.storage == f"{left.folder}/runs-$(POD_NAME)" and "loss" in {record.name for record in left.records}


def writes_to_the_annotated_sinks(left: Left) -> bool:
    curves = list(Path(left.folder, "curves").rglob("events.out.tfevents.*"))
    return "loss" in {record.name for record in left.records} and bool(curves) and "0.5" not in left.out


def shows_the_view(left: Left) -> bool:
    return f"look at it with {VIEW}/{expected_id()}\n" in left.err


def says_that_it_is_not_used_yet(variable: str) -> Callable[[Left], bool]:
    def says(left: Left) -> bool:
        assert left.pod.environment[variable]
        (note,) = left.notes
        return note.startswith(f"{NOT_USED_YET[variable]}=") and "has no effect yet" in note

    return says


@dataclass(frozen=True)
class Case:
    """In which situation a variable shows, and how."""

    situation: Any
    effect: Callable[[Left], bool]


CASES = {
    "MLDIAG_POD_NAME": Case(everything, names_the_host),
    "MLDIAG_POD_UID": Case(everything, records_the_pod),
    "MLDIAG_NODE_NAME": Case(everything, records_the_node),
    "MLDIAG_NAMESPACE": Case(everything, has_the_namespace),
    "MLDIAG_RUN_ID": Case(everything, is_the_run),
    "MLDIAG_WORKLOAD": Case(leader, records_the_workload),
    "GKE_DIAGON_IDENTIFIER": Case(without_ours, is_the_run),
    "GKE_DIAGON_METADATA": Case(without_ours, knows_the_workload_by_google),
    "MLDIAG_RANK": Case(everything, has_the_rank),
    "MLDIAG_SLICE": Case(slices, is_in_the_slice),
    "MLDIAG_HOST_INDEX": Case(slices, is_the_host_of_its_slice),
    "MLDIAG_ATTEMPT": Case(everything, is_the_attempt),
    "MLDIAG_STORAGE": Case(everything, writes_into_the_storage),
    "MLDIAG_SINKS": Case(annotated, writes_to_the_annotated_sinks),
    "MLDIAG_VIEW_URL": Case(leader, shows_the_view),
    "POD_NAMESPACE": Case(peer, has_the_namespace),
    "MLDIAG_CONTROL_PLANE_URL": Case(control_plane, says_that_it_is_not_used_yet("MLDIAG_CONTROL_PLANE_URL")),
    "MLDIAG_CONTROL_PLANE_CA": Case(control_plane, says_that_it_is_not_used_yet("MLDIAG_CONTROL_PLANE_CA")),
    "DIAGON_BASE_URL": Case(peer, says_that_it_is_not_used_yet("DIAGON_BASE_URL")),
    "DIAGON_CLUSTER_ID": Case(peer, says_that_it_is_not_used_yet("DIAGON_CLUSTER_ID")),
    "DIAGON_WORKLOAD_ID": Case(peer, says_that_it_is_not_used_yet("DIAGON_WORKLOAD_ID")),
}
ELSEWHERE = {"MLDIAG_PROFILER_PORT"}
"""Variables with a test of their own below."""


@pytest.mark.parametrize("variable", CASES)
def test_a_variable_has_its_documented_effect(variable: str, left_by: Callable[[Any], Left]) -> None:
    case = CASES[variable]
    left = left_by(case.situation)
    assert variable in left.pod.environment
    assert case.effect(left), (left.reported, left.err)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_nobody_complains_but_of_what_is_not_used_yet(situation: Any, left_by: Callable[[Any], Left]) -> None:
    left = left_by(situation)
    unused = {NOT_USED_YET[name] for name in left.pod.environment if name in NOT_USED_YET}
    assert left.reported["complaints"] == {f"start-no-effect-{name}": 1 for name in unused}
    assert len(left.notes) == len(unused), left.err


@pytest.mark.parametrize("annotation", [None, "10003,10004"])
@pytest.mark.peers
def test_the_profiler_listens_on_the_port_that_was_injected(annotation: str | None, tmp_path: Path) -> None:
    values = chart_values(tmp_path)
    annotations = {names.PROFILER_PORTS_ANNOTATION: annotation} if annotation else {}
    pod = injected(values, one_job(), 0, annotations=annotations)
    left = run_in(pod, tmp_path, prepare="import jax", arguments=", on_demand_xprof=True")
    assert pod.environment["MLDIAG_PROFILER_PORT"] == (annotation or str(values["profilerPort"])).partition(",")[0]
    assert left.document["profiler"]["port"] == int(pod.environment["MLDIAG_PROFILER_PORT"])
    assert left.reported["complaints"] == {}, left.err


# Sinks ----------------------------------------------------------------------------------------------------------------


SCRAPE = """
import time, urllib.request
deadline, page = time.monotonic() + 60, ""
while "ml_loss" not in page and time.monotonic() < deadline:
    try:
        page = urllib.request.urlopen("http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    except OSError:
        time.sleep(0.05)
print("scraped", "ml_loss" in page)
"""


@pytest.fixture(scope="module")
def sinks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Whether each sink, named in the chart's values, got the program's metric."""
    folder, port = tmp_path_factory.mktemp("sinks"), free_port()
    with grpc_receiver() as by_grpc, http_receiver() as by_http, logging_server() as logging:
        urls = [
            *("jsonl:", "stdout:", f"tensorboard:{folder}/curves", f"prometheus:127.0.0.1:{port}"),
            *(
                f"otlp://127.0.0.1:{by_grpc.port}",
                f"otlp+http://127.0.0.1:{by_http.port}",
                f"cloud-logging:{logging.url}",
            ),
        ]
        pod = injected(chart_values(folder) | {"sinks": urls}, one_job(), 0)
        where = ', project="p", region="us-central1"'
        left = run_in(pod, folder, arguments=where, while_it_runs=SCRAPE.format(port=port))
    assert left.document["sinks"] == urls
    # On a busy machine Google's libraries take more than the 2 s after which the first records wait on the disk.
    assert not [key for key in left.reported["complaints"] if "cloud-logging" not in key], left.err
    return {
        "jsonl": "loss" in {record.name for record in left.records},
        "stdout": any("loss" in line and "0.5" in line for line in left.out.splitlines()[:-1]),
        "tensorboard": any(Path(folder, "curves").rglob("events.out.tfevents.*")),
        "prometheus": "scraped True" in left.out,
        "otlp": "loss" in by_grpc.metrics,
        "otlp+http": any(request.path == "/v1/metrics" for request in by_http.taken),
        "cloud-logging": any("loss" in json.dumps(entry) for entry in logging.entries.values()),
    }


OVER_TLS = {"otlp+https"}
"""As `otlp+http`, to a receiver with a certificate: tests/sdk/sinks/test_otlp.py."""


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - NEED_A_RUN_OF_THEIRS - OVER_TLS))
def test_a_sink_of_the_chart_gets_the_records(scheme: str, sinks: dict[str, bool]) -> None:
    assert sinks[scheme]


# Nothing is left out --------------------------------------------------------------------------------------------------


def product_variables() -> set[str]:
    """Name all that any pod can get."""
    found = {profiler_port(1)["name"], *(each["name"] for each in control_plane_variables(FULL))}
    for workload in WORKLOADS:
        if workload.groups:
            continue
        body = a.thing("w", kind=workload.kind, api_version=workload.api_version)
        identity = InjectedIdentity.of(WorkloadRun(body, "group"), workload, cluster=CLUSTER, namespace="ml")
        for labels in ({}, {workload.places.jobs: "1"} if workload.places.jobs else {}):
            reported = variables(identity, FULL, pod_labels=labels, peer_url=PEER_CONTROL_PLANE)
            found |= {each["name"] for each in reported}
    return found


def test_every_variable_that_a_pod_can_get_has_a_case() -> None:
    assert product_variables() == CASES.keys() | ELSEWHERE


def test_every_setting_of_the_webhook_is_set_here() -> None:
    defaults = {field.name: field.default for field in fields(InjectionSettings) if field.default is not MISSING}
    assert not [name for name, default in defaults.items() if getattr(FULL, name) == default]


def test_what_is_not_used_yet_is_a_variable_of_the_product() -> None:
    assert NOT_USED_YET.keys() <= product_variables()
    assert set(NOT_USED_YET.values()) <= NOT_USED_YET.keys()
