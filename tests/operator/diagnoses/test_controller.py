"""Diagnoses of captures on a real API server; the test is the kubelet that runs the reader of a Job."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.layout import diagnosis_key
from mldiagnostics.store import open_store
from mldiagnostics_api.reports.reported_run import RunKey
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.diagnoses import diagnosis as diagnosis_module
from mldiagnostics_operator.diagnoses.controller import DiagnosisController
from mldiagnostics_operator.diagnoses.job import VOLUME, JobTemplate
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders
from support.cluster.operating import DEADLINE_S, condition
from support.diagnosed_sessions import put_diagnosed_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

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
    ml: Namespace, volume: Path, *, template: JobTemplate | None = TEMPLATE, exchange: RunExchange | None = None
) -> AsyncIterator[DiagnosisController]:
    config = OperatorConfig(
        watch_namespaces=(ml.name,), pod_namespace=ml.name, volume_root=volume, diagnosis_job=template
    )
    controller = DiagnosisController(
        ml.cluster,
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


async def pending(ml: Namespace, name: str = "capture", location: str = "volume:///ml/trainer") -> dict[str, Any]:
    """Make a finished capture that waits for its diagnosis."""
    conditions = [
        {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": NOW}
        for kind, status in (("Complete", "True"), ("Diagnosed", "Unknown"))
    ]
    results = [
        {"pod": f"trainer-{n}", "node": f"n{n}", "rank": n, "state": "Captured", "reason": "Captured",
         "file": f"{location}/plugins/profile/{SESSION}/host-{n}.xplane.pb"}
        for n in range(4)
    ]  # fmt: skip
    status = {
        "phase": "Succeeded",
        "sessionId": SESSION,
        "completionTime": NOW,
        "holder": "another",
        "captureResult": {"status": "Succeeded", "outputLocation": location},
        "conditions": conditions,
        "results": results,
        "diagnosis": {"state": "Pending", "summary": "pending", "runs": [RUN]},
    }
    path = path_to("diagon.gke.io", "v1alpha1", "mldiagnosticsconnections", namespace=ml.name)
    return await ml.put(path, {**builders.connection(name, namespace=ml.name), "status": status})


async def job_of(ml: Namespace, uid: str) -> dict[str, Any]:
    """Wait for the Job of a capture."""
    path = path_to("batch", "v1", "jobs", namespace=ml.name, name=f"mldiag-diagnosis-{uid}")
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await ml.cluster.get(path)
            except NotFound:
                await asyncio.sleep(0.05)


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
    diagnosis = status["diagnosis"]
    assert diagnosis["summary"].startswith("SlowHost: trainer-2 in input, ")
    assert diagnosis["findings"][0]["targets"] == [{"pod": "trainer-2", "node": "n2", "rank": 2}]
    assert condition(status, "Diagnosed")["status"] == "True"
    assert (status["phase"], status["captureResult"]["status"], status["holder"]) == (
        "Succeeded",
        "Succeeded",
        "another",
    )
    [first, *_] = exchange.findings(RunKey(ml.name, RUN))
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


async def test_an_operator_without_jobs_says_so(ml: Namespace, tmp_path: Path) -> None:
    async with diagnosing(ml, tmp_path, template=None):
        await pending(ml)
        status = await ml.until(lambda status: status["diagnosis"]["state"] == "Failed")
    assert condition(status, "Diagnosed")["reason"] == "Disabled"


def _path(ml: Namespace) -> str:
    return path_to("diagon.gke.io", "v1alpha1", "mldiagnosticsconnections", namespace=ml.name)
