"""A run of a JobSet on a real API server, where the tests act as its controllers, as the kubelet and as Kueue."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders
from support.cluster.namespaces import Stage
from support.cluster.operating import DEADLINE_S, Namespace
from support.cluster.quota import limit_objects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

Object = dict[str, Any]
HOSTS: Final = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
POD: Final = {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}
JOB: Final = {**HOSTS, "template": POD}
JOBS: Final = {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": JOB}}]}


async def runs_once(ml: Namespace, holds: Callable[[Object], Any]) -> list[Object]:
    """Wait until the first run of a namespace meets the condition; return all runs."""
    runs: list[Object] = []
    path = path_to(*RUNS.gvr, namespace=ml.name)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (runs and holds(runs[0])):
                await asyncio.sleep(0.1)
                runs = await ml.cluster.items(path, dict)
    except TimeoutError:
        raise AssertionError(f"the run stays {runs}") from None
    return runs


class World:
    """A run of a JobSet with its pods, and the exchange with captures."""

    def __init__(self, ml: Namespace, controller: RunController, exchange: RunExchange) -> None:
        self.ml, self.controller, self.exchange = ml, controller, exchange
        self.jobset: Object = {}
        self.run_id = ""

    @classmethod
    def over(cls, cluster: ApiClient, namespace: str, volume: Path) -> World:
        """Return a world whose controller does not run yet."""
        exchange = RunExchange()
        config = OperatorConfig(
            watch_namespaces=(namespace,),
            cluster_name="test-cluster",
            volume_root=volume,
            policy=Policy(default_storage=Location.parse("volume:///runs")),
        )
        controller = RunController(
            cluster,
            config,
            OperatorMetrics(),
            holder="operator/uid/1",
            exchange=exchange,
            storage=Storage(config.volume_root),
            backoff=Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2),
        )
        return cls(Namespace(cluster, namespace, "10.0.0.1"), controller, exchange)

    async def start(self, *, labels: Object | None = None, **spec: Any) -> None:
        """Make the JobSet, and wait for its run."""
        opted_in = {"managed-mldiagnostics-gke": "true"} | (labels or {})
        api_version = "jobset.x-k8s.io/v1alpha2"
        stage = Stage(self.ml, "")
        self.jobset = await stage.make(api_version, "JobSet", "trainer", labels=opted_in, spec=JOBS | spec)
        run = await self.until(lambda run: run["spec"].get("runId"))
        self.run_id = run["spec"]["runId"]

    async def until(self, holds: Callable[[Object], Any]) -> Object:
        """Wait until the run meets the condition; return it."""
        return (await runs_once(self.ml, holds))[0]

    async def limit_runs(self, most: int) -> None:
        """Limit the number of runs by a quota."""
        await limit_objects(self.ml.cluster, self.ml.name, RUNS, most)

    async def pod(
        self, name: str, node: str, attempt: int = 0, *, labelled: bool = True, place: Object | None = None
    ) -> Object:
        """Make a pod that runs; `place` are the labels with its position."""
        labels = (place or {}) | {"jobset.sigs.k8s.io/restart-attempt": str(attempt)}
        labels |= {"jobset.sigs.k8s.io/jobset-uid": self.jobset["metadata"]["uid"]}
        labels |= {RUN_LABEL: run_label(self.run_id)} if labelled else {}
        owner = builders.thing("trainer-workers-0", kind="Job", api_version="batch/v1")
        body = builders.pod(name, namespace=self.ml.name, labels=labels, node=node, owner=owner)
        now = format_time(utc_now())
        body["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]
        body["status"].pop("containerStatuses", None)
        pod = await self.ml.put(path_to("", "v1", "pods", namespace=self.ml.name), body)
        await self.pull(pod, "2026-04-24T03:04:05Z")
        running = {"containerStatuses": [self.container({"running": {"startedAt": now}})]}
        path = path_to("", "v1", "pods", namespace=self.ml.name, name=name, sub="status")
        return await self.ml.cluster.patch(path, {"status": running})

    async def pull(self, pod: Object, time: str) -> None:
        """Record when the image of a pod was present."""
        metadata = pod["metadata"]
        subject = {"kind": "Pod", "name": metadata["name"], "namespace": self.ml.name, "uid": metadata["uid"]}
        body = {
            "metadata": {"name": f"{metadata['name']}.pulled"},
            "involvedObject": subject,
            "reason": "Pulled",
            "type": "Normal",
            "message": "Successfully pulled image",
            "firstTimestamp": time,
            "lastTimestamp": time,
        }
        await self.ml.cluster.create(path_to("", "v1", "events", namespace=self.ml.name), body)

    async def event(self, subject: Object, reason: str, message: str) -> None:
        """Record an event of a controller that happens now."""
        metadata, now = subject["metadata"], format_time(utc_now())
        involved = {key: metadata[key] for key in ("name", "namespace", "uid")}
        body = {
            "metadata": {"generateName": f"{metadata['name']}."},
            "involvedObject": involved | {"apiVersion": subject["apiVersion"], "kind": subject["kind"]},
            "reason": reason,
            "type": "Warning",
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        await self.ml.cluster.create(path_to("", "v1", "events", namespace=self.ml.name), body)

    async def events(self, *wanted: str) -> list[str]:
        """Return the reasons of the events about the run, in their order, once the wanted ones are there."""
        path, reasons = path_to("", "v1", "events", namespace=self.ml.name), [""]
        async with asyncio.timeout(DEADLINE_S):
            while not {*wanted} <= {*reasons}:
                await asyncio.sleep(0.1)
                events: list[Object] = await self.ml.cluster.items(path, dict, fields="involvedObject.kind=MLRun")
                events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
                reasons = [event["reason"] for event in events]
        return reasons

    async def fail(self, name: str, code: int) -> None:
        """End a pod with an exit code."""
        now = format_time(utc_now())
        ended = {"exitCode": code, "reason": "Error", "startedAt": now, "finishedAt": now}
        status = {"phase": "Failed", "containerStatuses": [self.container({"terminated": ended})]}
        path = path_to("", "v1", "pods", namespace=self.ml.name, name=name, sub="status")
        await self.ml.cluster.patch(path, {"status": status})

    async def restart(
        self, name: str, count: int, code: int, reason: str, *, after_s: int = 0, delayed: bool = False
    ) -> None:
        """End the container of a pod some seconds from now, and restart it in place, or delay the next restart."""
        now = format_time(utc_now() + timedelta(seconds=after_s))
        ended = {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}
        back_off = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
        state = {"waiting": back_off} if delayed else {"running": {"startedAt": now}}
        container = self.container(state) | {"restartCount": count, "lastState": {"terminated": ended}}
        path = path_to("", "v1", "pods", namespace=self.ml.name, name=name, sub="status")
        await self.ml.cluster.patch(path, {"status": {"containerStatuses": [container]}})

    async def set_jobset(self, *, restarts: int, ready: int) -> None:
        """Set what the controller of JobSets counts."""
        parts = {"name": "workers", "ready": ready, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name="trainer", sub="status")
        await self.ml.cluster.patch(path, {"status": {"restarts": restarts, "replicatedJobsStatus": [parts]}})

    async def complete_jobset(self) -> None:
        """Complete the JobSet."""
        done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobs completed"}
        conditions = [{**done, "lastTransitionTime": format_time(utc_now())}]
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name="trainer", sub="status")
        await self.ml.cluster.patch(path, {"status": {"conditions": conditions}})

    @staticmethod
    def container(state: Object) -> Object:
        """Return the status of the container."""
        fields = {"ready": False, "restartCount": 0, "image": "train:1", "imageID": "train:1"}
        return {"name": "train", "state": state, **fields}


class Queue:
    """Kueue, as far as a run sees it: it suspends the JobSet and explains that in a Workload."""

    def __init__(self, world: World, path: str) -> None:
        self.world, self.path = world, path
        self.conditions: dict[str, Object] = {}

    @classmethod
    async def of(cls, world: World) -> Queue:
        """Install Kueue's resource, and make the Workload of the JobSet."""
        spec = {"queueName": "tpu", "podSets": [{"name": "workers", "count": 2, "template": {"spec": {}}}]}
        made = await Stage(world.ml, "").make(
            "kueue.x-k8s.io/v1beta2", "Workload", "jobset-trainer", owner=world.jobset, spec=spec
        )
        name = made["metadata"]["name"]
        return cls(world, path_to("kueue.x-k8s.io", "v1beta2", "workloads", namespace=world.ml.name, name=name))

    async def set(self, **conditions: tuple[str, str, str]) -> None:
        """Set status, reason and message of conditions."""
        for kind, (status, reason, message) in conditions.items():
            times = {"lastTransitionTime": format_time(utc_now())}
            self.conditions[kind] = {"type": kind, "status": status, "reason": reason, "message": message} | times
        body = {"status": {"conditions": [*self.conditions.values()]}}
        await self.world.ml.cluster.patch(f"{self.path}/status", body)

    async def suspend(self, *, suspended: bool) -> None:
        """Suspend or resume the JobSet."""
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.world.ml.name, name="trainer")
        await self.world.ml.cluster.patch(path, {"spec": {"suspend": suspended}})


@asynccontextmanager
async def running(cluster: ApiClient, namespace: str, volume: Path) -> AsyncIterator[World]:
    """Run the controller over the namespace."""
    world = World.over(cluster, namespace, volume)
    task = asyncio.create_task(world.controller.run())
    try:
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def attempt(run: Object, number: int) -> Object:
    """Return the first entry of an attempt in the status of a run, or empty."""
    attempts = run.get("status", {}).get("attempts") or ()
    return next((each for each in attempts if each["attempt"] == number), {})
