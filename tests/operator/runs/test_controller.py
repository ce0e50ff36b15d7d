"""The controller of runs on a real API server, where the tests act as the controllers of workloads."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_name
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.runs import resync
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders
from support.cluster.definitions import DEFINITIONS, install
from support.cluster.namespaces import Stage
from support.cluster.operating import DEADLINE_S, Namespace, condition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
VIEW = "https://view.example.com"
OPTED_IN = {"managed-mldiagnostics-gke": "true"}
JOB = {"template": {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}}
REPLICATED = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, **JOB}}}]}
SOON = Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2)


class Runs:
    """The runs of a namespace, and the workloads in it."""

    def __init__(self, cluster: ApiClient, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.stage = Stage(Namespace(cluster, namespace, "10.0.0.1"), "")
        self.path = path_to(*RUNS.gvr, namespace=namespace)

    async def job(self, name: str = "trainer", *, labels: Object = OPTED_IN, **parts: Any) -> Object:
        return await self.stage.make("batch/v1", "Job", name, labels=labels, spec=JOB, **parts)

    async def all(self) -> list[Object]:
        return await self.cluster.items(self.path, dict)

    async def until(self, holds: Callable[[list[Object]], Any]) -> list[Object]:
        """Wait until the runs of the namespace meet the condition; return them, the oldest first."""
        runs: list[Object] = []
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(runs := sorted(await self.all(), key=_age)):  # noqa: ASYNC110 - polls the API server
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"the runs stay {runs}") from None
        return runs

    async def one(self, phase: str) -> Object:
        """Wait for a single run in a phase, and return it."""
        [run] = await self.until(lambda runs: [_phase(run) for run in runs] == [phase])
        return run

    async def set_status(self, workload: Object, **status: Any) -> None:
        group, _, version = workload["apiVersion"].rpartition("/")
        plural, name = f"{workload['kind'].lower()}s", workload["metadata"]["name"]
        path = path_to(group, version, plural, namespace=self.namespace, name=name, sub="status")
        await self.cluster.patch(path, {"status": status})

    async def delete(self, workload: Object) -> None:
        group, _, version = workload["apiVersion"].rpartition("/")
        plural, name = f"{workload['kind'].lower()}s", workload["metadata"]["name"]
        path = path_to(group, version, plural, namespace=self.namespace, name=name)
        with suppress(NotFound):
            await self.cluster.request("DELETE", path, body={"propagationPolicy": "Background"})

    async def events(self, last: str) -> list[str]:
        """Return the reasons of the events about runs, in their order, once the last one is there."""
        path, reasons = path_to("", "v1", "events", namespace=self.namespace), [""]
        async with asyncio.timeout(DEADLINE_S):
            while last not in reasons:
                listed = await self.cluster.items(path, dict, fields="involvedObject.kind=MLRun")
                reasons = [e["reason"] for e in sorted(listed, key=lambda e: int(e["metadata"]["resourceVersion"]))]
        return reasons


def _age(run: Object) -> tuple[str, str]:
    return run["metadata"]["creationTimestamp"], run["metadata"]["name"]


def _phase(run: Object) -> str:
    return str(run.get("status", {}).get("phase", ""))


def _workload(run: Object) -> str:
    return str(run.get("status", {}).get("workload", ""))


@asynccontextmanager
async def controlling(
    cluster: ApiClient, *namespaces: str, telemetry: OperatorMetrics | None = None
) -> AsyncIterator[RunController]:
    """Run the controller over namespaces, or over the whole cluster without one."""
    config = OperatorConfig(watch_namespaces=namespaces, cluster_name="test-cluster", view_url=VIEW)
    storage = Storage(config.volume_root)
    controller = RunController(
        cluster, config, telemetry or OperatorMetrics(), holder="operator/uid/1", storage=storage, backoff=SOON
    )
    running = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def runs(cluster: ApiClient, namespace: str) -> Runs:
    await install(cluster, RUNS)
    return Runs(cluster, namespace)


async def test_a_job_set_from_its_queue_to_its_end(runs: Runs, cluster: ApiClient) -> None:
    queued = OPTED_IN | {"kueue.x-k8s.io/queue-name": "tpu"}
    async with controlling(cluster):
        made = await runs.stage.make(
            "jobset.x-k8s.io/v1alpha2", "JobSet", "trainer", labels=queued, spec={"suspend": True, **REPLICATED}
        )
        run = await runs.one("Pending")
        assert run["metadata"]["name"] == run_name("trainer", run["spec"]["runId"])
        assert run["status"]["url"] == f"{VIEW}/{run['spec']['runId']}"
        assert run["spec"]["workloadRef"]["uid"] == made["metadata"]["uid"]
        assert (run["status"]["reason"], run["status"]["hosts"]["summary"]) == ("Queued", "0/4")
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=runs.namespace, name="trainer")
        await cluster.patch(path, {"spec": {"suspend": False}})
        parts = {"name": "workers", "ready": 2, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0}
        await runs.set_status(made, restarts=0, replicatedJobsStatus=[parts])
        await runs.one("Active")
        await runs.set_status(made, restarts=1, replicatedJobsStatus=[parts | {"ready": 0}])
        await runs.until(lambda listed: listed[0]["status"]["attempt"] == 1)
        done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "done"}
        done["lastTransitionTime"] = "2036-01-01T00:00:00Z"
        await runs.set_status(made, conditions=[done])
        run = await runs.one("Completed")
        assert condition(run["status"], "Complete")["reason"] == "AllJobsCompleted"
        assert [each["attempt"] for each in run["status"]["attempts"]] == [0, 1]
        events = await runs.events(last="Completed")
        assert [event for event in events if event != "Queued"] == ["Admitted", "Started", "Restarted", "Completed"]
        await runs.delete(made)
        assert (await runs.one("Completed"))["status"] == run["status"]


async def test_a_train_job_is_one_run_with_its_job_set(runs: Runs, cluster: ApiClient) -> None:
    """The test writes what Kubeflow's trainer copies from the JobSet; its controller does not run here."""

    async def change(**spec: Any) -> None:
        path = path_to("trainer.kubeflow.org", "v1alpha1", "trainjobs", namespace=runs.namespace, name="tune")
        await cluster.patch(path, {"spec": spec})

    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}, "suspend": True}
    async with controlling(cluster):
        made = await runs.stage.make("trainer.kubeflow.org/v1alpha1", "TrainJob", "tune", labels=OPTED_IN, spec=spec)
        parts = {"labels": OPTED_IN, "spec": REPLICATED, "owner": made}
        await runs.stage.make("jobset.x-k8s.io/v1alpha2", "JobSet", "tune", **parts)
        assert (await runs.one("Pending"))["status"]["reason"] == "Suspended"
        part = {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        idle = part | {"ready": 0, "active": 0, "suspended": 1}
        for jobs, is_suspended, phase in (
            ([part], False, "Active"),
            ([idle], True, "Pending"),
            ([part], False, "Active"),
        ):
            await change(suspend=is_suspended)
            await runs.set_status(made, jobsStatus=jobs)
            run = await runs.one(phase)
            assert (run["status"]["workload"], run["status"]["hosts"]["summary"]) == ("TrainJob/tune", "0/2")
        failed = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "jobset failed"}
        await runs.set_status(made, conditions=[failed | {"lastTransitionTime": "2036-01-01T00:00:00Z"}])
        run = await runs.one("Failed")
        assert condition(run["status"], "Complete")["reason"] == "FailedJobs"
        events = [event for event in await runs.events(last="Failed") if event != "Disrupted"]
        assert events == ["Admitted", "Started", "Suspended", "Admitted", "Failed"]
        await runs.delete(made)
        assert (await runs.one("Failed"))["status"] == run["status"]


async def test_two_workloads_of_one_name_are_two_runs(runs: Runs, cluster: ApiClient) -> None:
    async with controlling(cluster):
        first = await runs.job()
        await runs.set_status(first, active=1, ready=1, startTime="2036-01-01T00:00:00Z")
        await runs.one("Active")
        await runs.delete(first)
        await runs.one("Failed")
        while (second := await runs.job())["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]:
            await runs.delete(second)  # the run id has whole seconds
        listed = await runs.until(lambda listed: {_phase(run) for run in listed} == {"Failed", "Pending"})
        by_phase = {_phase(run): run for run in listed}  # both may be created in one second
        assert by_phase["Pending"]["spec"]["workloadRef"]["uid"] == second["metadata"]["uid"]
        assert by_phase["Failed"]["spec"]["workloadRef"]["uid"] == first["metadata"]["uid"]
        assert condition(by_phase["Failed"]["status"], "Complete")["reason"] == "WorkloadDeleted"


async def test_a_restarted_operator_goes_on_and_learns_what_happened_meanwhile(runs: Runs, cluster: ApiClient) -> None:
    async with controlling(cluster):
        kept, deleted = await runs.job("kept"), await runs.job("deleted")
        for job in (kept, deleted):
            await runs.set_status(job, active=1, ready=1, startTime="2036-01-01T00:00:00Z")
        before = await runs.until(lambda listed: [_phase(run) for run in listed] == ["Active", "Active"])
    await runs.delete(deleted)
    async with controlling(cluster):
        after = await runs.until(lambda listed: sorted(map(_phase, listed)) == ["Active", "Failed"])
        assert [run["metadata"]["uid"] for run in after] == [run["metadata"]["uid"] for run in before]
        by_workload = {run["status"]["workload"]: _phase(run) for run in after}
        assert by_workload == {"Job/kept": "Active", "Job/deleted": "Failed"}
        [path] = [f"{runs.path}/{run['metadata']['name']}" for run in after if _phase(run) == "Active"]
        await cluster.request("DELETE", path)
        again = await runs.until(
            lambda listed: len(listed) == 2 and {_phase(run) for run in listed} == {"Active", "Failed"}
        )
        assert {run["metadata"]["uid"] for run in again} != {run["metadata"]["uid"] for run in before}


async def test_the_labels_of_namespace_owner_and_pod_decide(runs: Runs, cluster: ApiClient) -> None:
    namespace = path_to("", "v1", "namespaces", name=runs.namespace)
    async with controlling(cluster, runs.namespace):
        pod_spec = {"containers": [{"name": "train", "image": "train:1"}]}
        pods = path_to("", "v1", "pods", namespace=runs.namespace)
        unlabelled = await runs.job("by-pod", labels={})
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "by-pod", "uid": unlabelled["metadata"]["uid"]}
        part = {"name": "part", "labels": OPTED_IN, "ownerReferences": [owner | {"controller": True}]}
        await cluster.create(pods, {"metadata": part, "spec": pod_spec})
        await cluster.create(pods, {"metadata": {"name": "lone", "labels": OPTED_IN}, "spec": pod_spec})
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "uid": "c"}}
        await runs.job("nightly-1", owner=cron)
        jobset = await runs.stage.make("jobset.x-k8s.io/v1alpha2", "JobSet", "top", labels=OPTED_IN, spec=REPLICATED)
        await runs.job("top-workers-0", owner=jobset)
        await runs.job("other", labels={})
        listed = await runs.until(lambda listed: len(listed) >= 4 and all(map(_phase, listed)))
        assert {run["status"]["workload"] for run in listed} == {
            "Job/by-pod",
            "Pod/lone",
            "Job/nightly-1",
            "JobSet/top",
        }
        groups = {run["status"]["workload"]: run["spec"].get("runGroup") for run in listed}
        assert groups["Job/nightly-1"] == "nightly"
    async with controlling(cluster):
        await cluster.patch(namespace, {"metadata": {"labels": OPTED_IN}})
        await runs.until(lambda listed: "Job/other" in {run.get("status", {}).get("workload") for run in listed})
        assert len(await runs.all()) == 5


async def test_what_is_left_of_a_deleted_workload_is_not_a_run(runs: Runs, cluster: ApiClient) -> None:
    namespace = path_to("", "v1", "namespaces", name=runs.namespace)
    await cluster.patch(namespace, {"metadata": {"labels": OPTED_IN}})
    jobset = "jobset.x-k8s.io/v1alpha2"
    gone = builders.thing("gone", kind="JobSet", api_version=jobset, uid=str(uuid4()))
    await runs.job("gone-workers-0", owner=gone)
    trainjob = builders.thing("whole", kind="TrainJob", api_version="trainer.kubeflow.org/v1alpha1", uid=str(uuid4()))
    part = await runs.stage.make(jobset, "JobSet", "whole", spec=REPLICATED, owner=trainjob)
    await runs.job("whole-workers-0", owner=part)
    async with controlling(cluster):
        await runs.job("after")
        listed = await runs.until(lambda listed: any(_workload(run) == "Job/after" for run in listed))
        assert [_workload(run) for run in listed] == ["Job/after"]


async def test_a_workload_that_only_its_pod_opts_in_is_read_until_its_end(
    runs: Runs, cluster: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resync, "RESYNC_S", 0.1)
    async with controlling(cluster):
        job = await runs.job(labels={})
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": job["metadata"]["uid"]}
        part = {"name": "part", "labels": OPTED_IN, "ownerReferences": [owner | {"controller": True}]}
        pod = {"metadata": part, "spec": {"containers": [{"name": "train", "image": "train:1"}]}}
        await cluster.create(path_to("", "v1", "pods", namespace=runs.namespace), pod)
        await runs.one("Pending")
        await runs.set_status(job, active=1, ready=1, startTime="2036-01-01T00:00:00Z")
        await runs.one("Active")
        await runs.delete(job)
        assert condition((await runs.one("Failed"))["status"], "Complete")["reason"] == "WorkloadDeleted"


@pytest.mark.parametrize("everywhere", [True, False])
async def test_a_workload_that_only_its_pod_opts_in_gets_another_object_if_its_own_is_deleted(
    runs: Runs, cluster: ApiClient, *, everywhere: bool
) -> None:
    async with controlling(cluster, *(() if everywhere else (runs.namespace,))):
        job = await runs.job(labels={})
        for name in ("first", "second"):
            pod = builders.pod(name, namespace=runs.namespace, labels=OPTED_IN, owner=job)
            await cluster.create(path_to("", "v1", "pods", namespace=runs.namespace), pod)
        before = await runs.one("Pending")
        await cluster.delete(f"{runs.path}/{before['metadata']['name']}", uid=before["metadata"]["uid"])
        [after] = await runs.until(
            lambda listed: [each for each in listed if each["metadata"]["uid"] != before["metadata"]["uid"]]
        )
        assert after["spec"]["workloadRef"] == before["spec"]["workloadRef"]


async def test_without_its_definition_the_controller_waits_and_then_records(
    runs: Runs, cluster: ApiClient, namespace: str
) -> None:
    path = f"{DEFINITIONS}/{RUNS.definition_name}"
    await cluster.request("DELETE", path)
    async with asyncio.timeout(DEADLINE_S):
        with suppress(NotFound):
            while True:
                await cluster.get(path)
                await asyncio.sleep(0.1)
    telemetry = OperatorMetrics()
    async with controlling(cluster, namespace, telemetry=telemetry):
        await runs.job()
        async with asyncio.timeout(DEADLINE_S):
            while b"mldiagnostics_runs_resource_missing 1.0" not in telemetry.exposition():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await install(cluster, RUNS)
        await runs.one("Pending")
        assert b"mldiagnostics_runs_resource_missing 0.0" in telemetry.exposition()
