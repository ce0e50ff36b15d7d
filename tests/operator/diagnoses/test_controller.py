"""Diagnoses of captures on a real API server; the test is the kubelet that runs the reader of a Job."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.layout import SUMMARY_SUFFIX, TRACE_SUFFIX, capture_record_key, diagnosis_key
from mldiagnostics.store import open_store
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator import request_retry
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.diagnoses import conclusion
from mldiagnostics_operator.diagnoses import diagnosis as diagnosis_module
from mldiagnostics_operator.diagnoses.controller import PER_NAMESPACE, DiagnosisController
from mldiagnostics_operator.diagnoses.job import VOLUME, JobTemplate
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders
from support.cluster.operating import DEADLINE_S, condition
from support.diagnosed_sessions import put_diagnosed_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from mldiagnostics_api.v1alpha1 import RunFinding
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.api_server_faults import FaultyApiServer
    from support.cluster.operating import Namespace

pytestmark = pytest.mark.apiserver

SESSION, NOW, RUN = "slow-1", "2026-11-23T10:00:00Z", "4f6c" + 60 * "0"
CONTAINER = {
    "name": "diagnosis",
    "image": "cli:1",
    "command": [sys.executable, "-m", "mldiagnostics_diagnosis"],
    "volumeMounts": [],
}
TEMPLATE = JobTemplate(
    {"app": "diagnosis"},
    {
        "backoffLimit": 0,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [CONTAINER], "volumes": [{"name": VOLUME, "emptyDir": {}}]}
        },
    },
    reads_buckets=False,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis_module, "_POLL_S", 0.05)


@asynccontextmanager
async def diagnosing(
    ml: Namespace,
    volume: Path,
    *,
    template: JobTemplate | None = TEMPLATE,
    exchange: RunExchange | None = None,
    cluster: ApiClient | None = None,
) -> AsyncIterator[DiagnosisController]:
    config = OperatorConfig(
        watch_namespaces=(ml.name,), pod_namespace=ml.name, volume_root=volume, diagnosis_job=template
    )
    controller = DiagnosisController(
        cluster or ml.cluster,
        config,
        OperatorMetrics(),
        holder="test",
        storage=Storage(volume),
        exchange=exchange or RunExchange(),
    )
    running = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        running.cancel()
        await asyncio.wait({running}, timeout=DEADLINE_S)


async def pending(
    ml: Namespace,
    name: str = "capture",
    location: str = "volume:///ml/trainer",
    *,
    runs: Sequence[str] = (RUN,),
    **trigger: Any,
) -> dict[str, Any]:
    """Make a finished capture that waits for its diagnosis; of several runs, each has a directory of its id."""
    directories = [location] if len(runs) < 2 else [f"{location}/{run}" for run in runs]
    conditions = [
        {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": NOW}
        for kind, status in (("Complete", "True"), ("Diagnosed", "Unknown"))
    ]
    results = [
        {"pod": f"trainer-{n}", "node": f"n{n}", "rank": n, "state": "Captured", "reason": "Captured",
         "bytes": 10, "file": f"{directory}/plugins/profile/{SESSION}/host-{n}.xplane.pb"}
        for directory in directories for n in range(4)
    ]  # fmt: skip
    status = {
        "phase": "Succeeded",
        "sessionId": SESSION,
        "completionTime": NOW,
        "holder": "another",
        "captureResult": {"status": "Succeeded", "outputLocation": location},
        "conditions": conditions,
        "results": results,
        "bytes": 10 * len(results),
        "diagnosis": {"state": "Pending", "summary": "pending", "runs": [*runs]},
    }
    path = path_to("diagon.gke.io", "v1alpha1", "mldiagnosticsconnections", namespace=ml.name)
    return await ml.put(path, {**builders.connection(name, namespace=ml.name, **trigger), "status": status})


async def job_of(ml: Namespace, uid: str) -> dict[str, Any]:
    """Wait for the Job of a capture."""
    path = path_to("batch", "v1", "jobs", namespace=ml.name, name=f"mldiag-diagnosis-{uid}")
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await ml.cluster.get(path)
            except NotFound:
                await asyncio.sleep(0.05)


async def jobs_of(ml: Namespace) -> list[dict[str, Any]]:
    """Return the Jobs of the namespace."""
    listed = await ml.cluster.get(path_to("batch", "v1", "jobs", namespace=ml.name))
    return [*listed["items"]]


async def findings_of(ml: Namespace, exchange: RunExchange, run: str = RUN) -> Sequence[RunFinding]:
    """Wait for the findings of a run."""
    async with asyncio.timeout(DEADLINE_S):
        while not (findings := exchange.findings(RunKey(ml.name, run))):  # noqa: ASYNC110 - the watch fills it
            await asyncio.sleep(0.05)
    return findings


async def end(ml: Namespace, job: dict[str, Any], kind: str = "Complete") -> None:
    """End a Job as its controller does."""
    before = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    status: dict[str, Any] = {
        "startTime": NOW,
        "conditions": [
            {"type": each, "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
            for each in (before, kind)
        ],
    }
    if kind == "Complete":
        status |= {"completionTime": NOW, "succeeded": 1}
    path = path_to("batch", "v1", "jobs", namespace=ml.name, name=job["metadata"]["name"])
    await ml.cluster.patch(f"{path}/status", {"status": status})


def read_as_kubelet(job: dict[str, Any], volume: Path) -> None:
    """Run the command of a Job over the directory that its mount leads to."""
    container = job["spec"]["template"]["spec"]["containers"][0]
    [mount] = container["volumeMounts"]
    root = volume / mount["subPath"].removesuffix(mount["mountPath"].removeprefix("/traces"))
    arguments = [str(root) if each == "/traces" else each for each in container["args"]]
    subprocess.run([*container["command"], *arguments], check=True, timeout=120, capture_output=True)


async def test_a_pending_capture_gets_the_findings_of_the_reader(ml: Namespace, tmp_path: Path) -> None:
    put_diagnosed_session(open_store(str(tmp_path)), "ml/trainer", SESSION, hosts=4, slow=2)
    (tmp_path / "ml/trainer" / diagnosis_key(SESSION)).unlink()
    exchange = RunExchange()
    async with diagnosing(ml, tmp_path, exchange=exchange):
        made = await pending(ml)
        job = await job_of(ml, made["metadata"]["uid"])
        await asyncio.to_thread(read_as_kubelet, job, tmp_path)
        await end(ml, job)
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Done")
        assert await ml.events("Diagnosed") == ["Diagnosed"]
        [first, *_] = await findings_of(ml, exchange)
    diagnosis = status["diagnosis"]
    assert diagnosis["summary"].startswith("SlowHost: trainer-2 in input, ")
    assert diagnosis["findings"][0]["targets"] == [{"pod": "trainer-2", "node": "n2", "rank": 2}]
    assert condition(status, "Diagnosed")["status"] == "True"
    assert condition(status, "Diagnosed")["message"].startswith(f"{diagnosis['summary']}. ")
    assert (status["phase"], status["captureResult"]["status"], status["holder"]) == (
        "Succeeded",
        "Succeeded",
        "another",
    )
    assert (first.code, first.hosts, first.session, first.capture) == ("SlowHost", ["trainer-2"], SESSION, "capture")


async def test_a_diagnosis_that_fails_leaves_the_capture_as_it_is(ml: Namespace, tmp_path: Path) -> None:
    async with diagnosing(ml, tmp_path):
        await asyncio.gather(*(pending(ml, name) for name in ("silent", "hostile")))
        await pending(ml, "elsewhere", location="gs://bucket/ml")
        for name in ("silent", "hostile"):
            job = await job_of(ml, (await ml.cluster.get(f"{_path(ml)}/{name}"))["metadata"]["uid"])
            if name == "hostile":
                open_store(str(tmp_path)).put(f"ml/trainer/{diagnosis_key(SESSION)}", b"[" * 100_000)
            await end(ml, job, "Failed")
            status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed", name)
            reason = {"silent": "JobFailed", "hostile": "InvalidResult"}[name]
            assert condition(status, "Diagnosed")["reason"] == reason
            assert (status["phase"], condition(status, "Complete")["status"]) == ("Succeeded", "True")
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed", "elsewhere")
        assert condition(status, "Diagnosed")["reason"] == "StorageNotShared"


async def test_jobs_of_a_namespace_wait_in_line(ml: Namespace, tmp_path: Path) -> None:
    captures = [f"capture-{number}" for number in range(PER_NAMESPACE + 2)]
    ended: set[str] = set()
    async with diagnosing(ml, tmp_path), asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(pending(ml, name) for name in captures))
        while len(ended) < len(captures):
            jobs = {job["metadata"]["name"]: job for job in await jobs_of(ml)}
            running = jobs.keys() - ended
            assert len(running) <= PER_NAMESPACE
            full = min(PER_NAMESPACE, len(captures) - len(ended))
            if len(running) < full:
                await asyncio.sleep(0.05)
                continue
            name = min(running)
            await end(ml, jobs[name], "Failed")
            ended.add(name)
        for name in captures:
            await ml.until(lambda status: status["diagnosis"]["state"] == "Failed", name)


async def test_the_next_leader_finds_the_job_of_the_one_before(ml: Namespace, tmp_path: Path) -> None:
    put_diagnosed_session(open_store(str(tmp_path)), "ml/trainer", SESSION, hosts=4, slow=2)
    async with diagnosing(ml, tmp_path):
        made = await pending(ml)
        job = await job_of(ml, made["metadata"]["uid"])
    await end(ml, job)
    async with diagnosing(ml, tmp_path):
        await ml.until(lambda status: status["diagnosis"]["state"] == "Done")
    jobs = await ml.cluster.items(path_to("batch", "v1", "jobs", namespace=ml.name), dict)
    assert [each["metadata"]["uid"] for each in jobs] == [job["metadata"]["uid"]]


async def test_the_next_leader_notes_findings_that_no_run_has_yet(ml: Namespace, tmp_path: Path) -> None:
    """The leader before wrote the status of the capture, and died before that of its run."""
    put_diagnosed_session(open_store(str(tmp_path)), "ml/trainer", SESSION, hosts=4, slow=2)
    async with diagnosing(ml, tmp_path):
        made = await pending(ml)
        await end(ml, await job_of(ml, made["metadata"]["uid"]))
        await ml.until(lambda status: status["diagnosis"]["state"] == "Done")
    exchange = RunExchange()
    async with diagnosing(ml, tmp_path, exchange=exchange):
        [first, *_] = await findings_of(ml, exchange)
    assert (first.code, first.hosts, first.capture) == ("SlowHost", ["trainer-2"], "capture")


async def diagnosed_pulse(ml: Namespace, volume: Path, *, owner: str | None = None) -> dict[str, Any]:
    """Return the status of a pulse after its diagnosis; `owner` is the uid in the record of its session."""
    store = open_store(str(volume))
    put_diagnosed_session(store, "ml/trainer", SESSION, hosts=4, slow=2)
    async with diagnosing(ml, volume):
        uid = (await pending(ml, podName="trainer-0", pulse=True))["metadata"]["uid"]
        record = {"v": 1, "session": SESSION, "uid": owner or uid, "targets": []}
        store.put(f"ml/trainer/{capture_record_key(SESSION)}", json.dumps(record, indent=1).encode())
        await end(ml, await job_of(ml, uid))
        return await ml.until(lambda status: status["diagnosis"]["state"] == "Done")


def hosts_in(volume: Path, suffix: str = TRACE_SUFFIX) -> set[str]:
    """Return the hosts of the session that have a file."""
    files = volume.glob(f"ml/trainer/plugins/profile/{SESSION}/*{suffix}")
    return {path.name.removesuffix(suffix) for path in files}


async def test_a_pulse_keeps_the_traces_of_the_slow_host_and_of_one_other(ml: Namespace, tmp_path: Path) -> None:
    status = await diagnosed_pulse(ml, tmp_path)
    assert hosts_in(tmp_path) == {"host-0", "host-2"}
    assert len(hosts_in(tmp_path, SUMMARY_SUFFIX)) == 4
    assert status["diagnosis"]["summary"].startswith("SlowHost: trainer-2")
    assert [each["pod"] for each in status["results"] if each.get("file")] == ["trainer-0", "trainer-2"]
    assert [each["state"] for each in status["results"]] == ["Captured"] * 4
    assert status["bytes"] == 20


async def test_a_pulse_deletes_nothing_in_the_session_of_another_capture(ml: Namespace, tmp_path: Path) -> None:
    status = await diagnosed_pulse(ml, tmp_path, owner="another")
    assert hosts_in(tmp_path) == {f"host-{number}" for number in range(4)}
    assert len([each for each in status["results"] if each.get("file")]) == 4
    assert status["bytes"] == 40


async def test_each_run_of_a_capture_gets_its_own_findings(ml: Namespace, tmp_path: Path) -> None:
    runs = ["a" * 64, "b" * 64]
    for slow, run in enumerate(runs):
        put_diagnosed_session(open_store(str(tmp_path)), f"ml/{run}", SESSION, hosts=4, slow=slow)
    exchange = RunExchange()
    async with diagnosing(ml, tmp_path, exchange=exchange):
        uid = (await pending(ml, location="volume:///ml", runs=runs))["metadata"]["uid"]
        for number, run in enumerate(runs):
            job = await job_of(ml, f"{uid}-{number}")
            [mount] = job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
            assert mount["subPath"] == f"ml/{run}/plugins/profile/{SESSION}"
            await end(ml, job)
        await ml.until(lambda status: status["diagnosis"]["state"] == "Done")
        findings = [(await findings_of(ml, exchange, run))[0] for run in runs]
    assert [(each.code, each.hosts) for each in findings] == [("SlowHost", ["trainer-0"]), ("SlowHost", ["trainer-1"])]


async def test_a_job_whose_container_cannot_start_is_given_up(
    ml: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis_module, "BLOCKED_S", 0.2)
    async with diagnosing(ml, tmp_path):
        job = await job_of(ml, (await pending(ml))["metadata"]["uid"])
        await pod_of(ml, job, {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "cli:1"'}})
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "JobNotStarted"
    assert condition(status, "Diagnosed")["message"] == (
        f'Job {job["metadata"]["name"]} cannot start: ImagePullBackOff: Back-off pulling image "cli:1"'
    )


async def test_a_reader_that_was_killed_is_named_by_its_end(ml: Namespace, tmp_path: Path) -> None:
    async with diagnosing(ml, tmp_path):
        job = await job_of(ml, (await pending(ml))["metadata"]["uid"])
        await pod_of(ml, job, {"terminated": {"reason": "OOMKilled", "exitCode": 137}})
        await end(ml, job, "Failed")
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "JobFailed"
    assert "left no result: OOMKilled: its container ended with code 137;" in condition(status, "Diagnosed")["message"]
    assert (status["phase"], status["captureResult"]["status"]) == ("Succeeded", "Succeeded")


async def pod_of(ml: Namespace, job: dict[str, Any], state: dict[str, Any]) -> None:
    """Make the pod of a Job with a container in this state."""
    name = job["metadata"]["name"]
    status = {
        "containerStatuses": [
            {"name": "diagnosis", "image": "cli:1", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        ]
    }
    labels = {"batch.kubernetes.io/job-name": name}
    container = {"name": "diagnosis", "image": "cli:1"}
    pod = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}, "status": status}
    await ml.put(path_to("", "v1", "pods", namespace=ml.name), {"apiVersion": "v1", "kind": "Pod", **pod})


async def test_an_operator_without_jobs_says_so(ml: Namespace, tmp_path: Path) -> None:
    async with diagnosing(ml, tmp_path, template=None):
        await pending(ml)
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "Disabled"


@pytest.mark.parametrize("round_s", [300.0, 0.0], ids=["one round", "several rounds"])
async def test_a_result_is_written_as_soon_as_the_api_server_permits_it(
    ml: Namespace,
    faulty: FaultyApiServer,
    faulty_cluster: ApiClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    round_s: float,
) -> None:
    monkeypatch.setattr(conclusion, "_WRITE_S", round_s)
    faulty.faults = {"PATCH mldiagnosticsconnections": "forbid"}
    async with diagnosing(ml, tmp_path, template=None, cluster=faulty_cluster):
        await pending(ml)
        await faulty.clear_after_first()
        await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")


async def test_a_result_that_another_process_wrote_stays(
    ml: Namespace, faulty: FaultyApiServer, faulty_cluster: ApiClient, tmp_path: Path
) -> None:
    faulty.faults = {"PATCH mldiagnosticsconnections": "forbid"}
    async with diagnosing(ml, tmp_path, template=None, cluster=faulty_cluster) as controller:
        await pending(ml)
        await faulty.began.wait()
        written = {"diagnosis": {"state": "Failed", "summary": "by another process"}}
        await ml.cluster.patch(f"{_path(ml)}/capture/status", {"status": written})
        await faulty.clear_after_first()
        await asyncio.wait_for(controller.drain(), DEADLINE_S)
        assert (await ml.status())["diagnosis"]["summary"] == "by another process"


async def test_a_result_joins_the_conditions_of_others(
    ml: Namespace, faulty: FaultyApiServer, faulty_cluster: ApiClient, tmp_path: Path
) -> None:
    faulty.faults = {"PATCH mldiagnosticsconnections": "forbid"}
    async with diagnosing(ml, tmp_path, template=None, cluster=faulty_cluster):
        capture = await pending(ml)
        await faulty.began.wait()
        ours = {**capture["status"]["conditions"][0], "type": "example.com/Reviewed"}
        conditions = [ours, *reversed(capture["status"]["conditions"])]
        await ml.cluster.patch(f"{_path(ml)}/capture/status", {"status": {"conditions": conditions}})
        await faulty.clear_after_first()
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "Disabled"
    assert [each["type"] for each in status["conditions"]] == ["example.com/Reviewed", "Complete", "Diagnosed"]


async def test_a_job_is_created_as_soon_as_the_api_server_permits_it(
    ml: Namespace, faulty: FaultyApiServer, faulty_cluster: ApiClient, tmp_path: Path
) -> None:
    faulty.faults = {"POST jobs": "forbid"}
    async with diagnosing(ml, tmp_path, cluster=faulty_cluster):
        made = await pending(ml)
        await faulty.clear_after_first()
        await job_of(ml, made["metadata"]["uid"])


async def test_a_job_that_stays_forbidden_ends_the_diagnosis(
    ml: Namespace,
    faulty: FaultyApiServer,
    faulty_cluster: ApiClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_retry, "FORBIDDEN_S", 0.0)
    faulty.faults = {"POST jobs": "forbid"}
    async with diagnosing(ml, tmp_path, cluster=faulty_cluster):
        await pending(ml)
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "JobRejected"
    assert condition(status, "Diagnosed")["message"].endswith(
        "cannot be created or read: the API server returned 403; ask the administrator to check the operator's roles "
        "and log"
    )


async def test_an_internal_error_ends_the_diagnosis(ml: Namespace, tmp_path: Path) -> None:
    async with diagnosing(ml, tmp_path):
        await pending(ml, location="nowhere")  # others may write the status
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "InternalError"
    assert "(ValueError)" in condition(status, "Diagnosed")["message"]


def _path(ml: Namespace) -> str:
    return path_to("diagon.gke.io", "v1alpha1", "mldiagnosticsconnections", namespace=ml.name)
