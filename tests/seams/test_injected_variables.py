"""Every injected variable has its documented effect in a real program, without warnings.

The values pass the rendered chart, the webhook's configuration, the patch of a pod, the kubelet's resolution, and a
real program that starts a run. Every variable of the product needs a case here.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_port
from mldiagnostics.control_plane.endpoint import TOKEN_FILE
from mldiagnostics.identity import run_id
from mldiagnostics.sink_urls import SCHEMES
from mldiagnostics_api import names
from mldiagnostics_api.workloads.kinds import WORKLOADS
from mldiagnostics_api.workloads.owners import WorkloadRun
from mldiagnostics_api.workloads.variables import (
    CONTROL_PLANE_DIRECTORY,
    InjectedIdentity,
    InjectionSettings,
    control_plane_variables,
    profiler_port,
    variables,
)
from support.cluster import builders as a
from support.cluster.injected_programs import ProgramResult, injected, run_in
from support.servers.logging_server import logging_server
from support.servers.receivers import grpc_receiver, http_receiver
from support.servers.report_servers import report_server

if TYPE_CHECKING:
    from collections.abc import Callable

CREATED = dt.datetime(2026, 4, 24, 3, 4, 5, tzinfo=dt.UTC)
CLUSTER = "projects/p/locations/l/clusters/train"
VIEW = "https://view.example.com/$(HOME)"
PEER_CONTROL_PLANE = "http://control.ml.svc:8080"
FULL = InjectionSettings(
    cluster=CLUSTER,
    storage="gs://b",
    sinks=("jsonl:",),
    view_url=VIEW,
    control_plane_url="https://control.ml.svc:8443",
    control_plane_ca="PEM",
    profiler_port=9012,
)

NEED_THEIR_OWN_RUN = {"mlflow", "wandb"}
"""Sinks that need a tracker's run in the program; tests/sdk/integrations covers them."""


# Situations -----------------------------------------------------------------------------------------------------------


def one_job(*, attempt: str = "3") -> a.World:
    """Return a JobSet of one Job with three pods; the completion index is the rank."""
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


def everything(folder: Path) -> ProgramResult:
    """Run the last pod of three."""
    return run_in(injected(chart_values(folder), one_job()), folder)


def leader(folder: Path) -> ProgramResult:
    """Run the first pod, which writes the run's document."""
    return run_in(injected(chart_values(folder), one_job(), 0), folder)


def slices(folder: Path) -> ProgramResult:
    """Run a pod of the second of two slices."""
    return run_in(injected(chart_values(folder), a.jobset(jobs={"workers": (2, 3)})), folder)


def without_ours(folder: Path) -> ProgramResult:
    """Run a program that has only the variables of Google's SDK."""
    without = ("MLDIAG_RUN_ID", "MLDIAG_WORKLOAD", "MLDIAG_NAMESPACE")
    return run_in(injected(chart_values(folder), one_job()), folder, without=without)


def reporting(folder: Path) -> ProgramResult:
    """Run a pod with a control plane, whose files are in another directory than in a pod."""
    with report_server(folder / "control") as server:
        values = chart_values(folder) | {"controlPlane.url": server.url, "controlPlane.ca": Path(server.ca).read_text()}
        pod = injected(values, one_job())
        assert pod.environment["MLDIAG_CONTROL_PLANE_CA"] == f"{CONTROL_PLANE_DIRECTORY}/ca.crt"
        assert f"{CONTROL_PLANE_DIRECTORY}/token" == TOKEN_FILE
        files = {name: text for name, text in server.variables.items() if name != "MLDIAG_CONTROL_PLANE_URL"}
        result = run_in(pod, folder, env=files)
    return replace(result, reports=server.reports)


def peer(folder: Path) -> ProgramResult:
    """Run a workload whose annotation sets Google's SDK to self-hosted mode, with the variables for that only."""
    without = ("MLDIAG_NAMESPACE", "MLDIAG_RUN_ID", "GKE_DIAGON_IDENTIFIER")
    with report_server(folder / "peer", tls=False) as server:
        annotations = {names.PEER_URL_ANNOTATION: server.url}
        env = {"MLDIAG_CONTROL_PLANE_TOKEN_FILE": str(server.token_file)}
        pod = injected(chart_values(folder), one_job(), annotations=annotations)
        result = run_in(pod, folder, without=without, env=env)
    return replace(result, reports=server.reports)


def annotated(folder: Path) -> ProgramResult:
    values = chart_values(folder) | {"sinks": ["stdout:"]}
    sinks = f"jsonl:, tensorboard:{folder}/curves"
    return run_in(injected(values, one_job(), annotations={names.SINKS_ANNOTATION: sinks}), folder)


SITUATIONS = [everything, leader, slices, without_ours, reporting, peer, annotated]
Situation = "Callable[[Path], ProgramResult]"


def own_folder(plain_folder: Path) -> Path:
    """Return a new folder whose path the charts accept."""
    return Path(tempfile.mkdtemp(dir=plain_folder))


@pytest.fixture(scope="module")
def result_of(plain_folder: Path) -> Callable[[Any], ProgramResult]:
    """Return the results of a situation's program, which runs once."""
    results: dict[Any, ProgramResult] = {}

    def result(situation: Any) -> ProgramResult:
        if situation not in results:
            results[situation] = situation(own_folder(plain_folder))
        return results[situation]

    return result


# Effects --------------------------------------------------------------------------------------------------------------


def expected_id() -> str:
    return run_id(cluster="train", namespace="ml", kind="JobSet", name="trainer", created=CREATED)


def names_the_host(result: ProgramResult) -> bool:
    return bool(result.process["host"] == result.pod.object["metadata"]["name"])


def records_the_pod(result: ProgramResult) -> bool:
    return bool(result.process["podUid"] == result.pod.object["metadata"]["uid"])


def records_the_node(result: ProgramResult) -> bool:
    return bool(result.process["node"] == result.pod.object["spec"]["nodeName"])


def has_the_namespace(result: ProgramResult) -> bool:
    return bool(result.reported["namespace"] == "ml")


def is_the_run(result: ProgramResult) -> bool:
    return bool(result.reported["run_id"] == expected_id() == Path(result.reported["directory"]).name)


def records_the_workload(result: ProgramResult) -> bool:
    workload = result.document["identity"]["workload"]
    return bool((workload["name"], workload["uid"]) == ("trainer", a.uid_of("JobSet", "trainer")))


def knows_the_workload_by_google(result: ProgramResult) -> bool:
    workload = result.reported["workload"]
    return bool((workload["kind"], workload["cluster"], workload["labels"]) == ("JobSet", CLUSTER, {"team": "infra"}))


def has_the_rank(result: ProgramResult) -> bool:
    return result.reported["rank"] == 2 and {record.rank for record in result.records} == {2}


def is_in_the_slice(result: ProgramResult) -> bool:
    return bool(result.process["slice"] == 1)


def is_the_host_of_its_slice(result: ProgramResult) -> bool:
    return bool(result.process["hostIndex"] == 2)


def is_the_attempt(result: ProgramResult) -> bool:
    return {record.attempt for record in result.records} == {3}


def writes_into_the_storage(result: ProgramResult) -> bool:
    return result.storage == f"{result.folder}/runs-$(POD_NAME)" and "loss" in {
        record.name for record in result.records
    }


def writes_to_the_annotated_sinks(result: ProgramResult) -> bool:
    curves = list(Path(result.folder, "curves").rglob("events.out.tfevents.*"))
    return "loss" in {record.name for record in result.records} and bool(curves) and "0.5" not in result.out


def shows_the_view(result: ProgramResult) -> bool:
    return f"look at it with {VIEW}/{expected_id()}\n" in result.err


def reports_its_end(result: ProgramResult) -> bool:
    last = result.reports[-1]
    return last["path"] == f"/v1/runs/{expected_id()}/reports" and last["phase"] == "Completed" and last["rank"] == 2


def has_the_cluster(result: ProgramResult) -> bool:
    return bool(result.reported["cluster_id"] == "train")


@dataclass(frozen=True)
class Case:
    """Situation and effect of a variable."""

    situation: Any
    effect: Callable[[ProgramResult], bool]


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
    "MLDIAG_CONTROL_PLANE_URL": Case(reporting, reports_its_end),
    "MLDIAG_CONTROL_PLANE_CA": Case(reporting, reports_its_end),
    "DIAGON_BASE_URL": Case(peer, reports_its_end),
    "DIAGON_CLUSTER_ID": Case(peer, has_the_cluster),
    "DIAGON_WORKLOAD_ID": Case(peer, is_the_run),
}
ELSEWHERE = {"MLDIAG_PROFILER_PORT"}
"""Variables with a separate test below."""


@pytest.mark.parametrize("variable", CASES)
def test_a_variable_has_its_documented_effect(variable: str, result_of: Callable[[Any], ProgramResult]) -> None:
    case = CASES[variable]
    result = result_of(case.situation)
    assert variable in result.pod.environment
    assert case.effect(result), (result.reported, result.err)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_variable_causes_a_warning(situation: Any, result_of: Callable[[Any], ProgramResult]) -> None:
    result = result_of(situation)
    assert result.reported["complaints"] == {}
    assert result.notes == []


@pytest.mark.parametrize("annotation", [None, "10003,10004"])
@pytest.mark.peers
def test_the_profiler_listens_on_the_injected_port(annotation: str | None, plain_path: Path) -> None:
    values = chart_values(plain_path)
    annotations = {names.PROFILER_PORTS_ANNOTATION: annotation} if annotation else {}
    pod = injected(values, one_job(), 0, annotations=annotations)
    result = run_in(pod, plain_path, prepare="import jax", arguments=", on_demand_xprof=True")
    assert pod.environment["MLDIAG_PROFILER_PORT"] == (annotation or str(values["profilerPort"])).partition(",")[0]
    assert result.document["profiler"]["port"] == int(pod.environment["MLDIAG_PROFILER_PORT"])
    assert result.reported["complaints"] == {}, result.err


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
DELIVER = """
assert run.recording.flush(120)
"""


@pytest.fixture(scope="module")
def sinks(plain_folder: Path) -> dict[str, bool]:
    """Return whether each sink of the chart's values got the metric of the program."""
    folder, port = own_folder(plain_folder), free_port()
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
        result = run_in(pod, folder, arguments=where, while_it_runs=SCRAPE.format(port=port) + DELIVER)
    assert result.document["sinks"] == urls
    # On a busy machine Google's libraries may need more than 2 s; then the first records wait in the spool.
    assert not [key for key in result.reported["complaints"] if "cloud-logging" not in key], result.err
    return {
        "jsonl": "loss" in {record.name for record in result.records},
        "stdout": any("loss" in line and "0.5" in line for line in result.out.splitlines()[:-1]),
        "tensorboard": any(Path(folder, "curves").rglob("events.out.tfevents.*")),
        "prometheus": "scraped True" in result.out,
        "otlp": "loss" in by_grpc.metrics,
        "otlp+http": any(request.path == "/v1/metrics" for request in by_http.taken),
        "cloud-logging": any("loss" in json.dumps(entry) for entry in logging.entries.values()),
    }


OVER_TLS = {"otlp+https"}
"""Like `otlp+http`, with a certificate: tests/sdk/sinks/test_otlp.py covers it."""


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - NEED_THEIR_OWN_RUN - OVER_TLS))
def test_a_sink_of_the_chart_gets_the_records(scheme: str, sinks: dict[str, bool]) -> None:
    assert sinks[scheme]


# Completeness ---------------------------------------------------------------------------------------------------------


def product_variables() -> set[str]:
    """Return the names of all variables that a pod can get."""
    variable_names = {profiler_port(1)["name"], *(each["name"] for each in control_plane_variables(FULL))}
    for workload in WORKLOADS:
        if workload.groups:
            continue
        body = a.thing("w", kind=workload.kind, api_version=workload.api_version)
        identity = InjectedIdentity.of(WorkloadRun(body, "group"), workload, cluster=CLUSTER, namespace="ml")
        for labels in ({}, {workload.rank_labels.jobs: "1"} if workload.rank_labels.jobs else {}):
            reported = variables(identity, FULL, pod_labels=labels, peer_url=PEER_CONTROL_PLANE)
            variable_names |= {each["name"] for each in reported}
    return variable_names


def test_every_variable_that_a_pod_can_get_has_a_case() -> None:
    assert product_variables() == CASES.keys() | ELSEWHERE


def test_every_setting_of_the_webhook_is_set_here() -> None:
    defaults = {field.name: field.default for field in fields(InjectionSettings) if field.default is not MISSING}
    assert not [name for name, default in defaults.items() if getattr(FULL, name) == default]
