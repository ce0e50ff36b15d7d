"""A run of a JobSet whose controllers, kubelet and processes are the test, as a history says."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster import builders
from support.cluster.cluster_histories import ReplaceLeader, Restart, SetClock, Silence, Train
from support.cluster.control_planes import ACCOUNT, Reporter, make_account
from support.cluster.namespaces import Stage
from support.cluster.operating import DEADLINE_S, Namespace
from support.cluster.run_world import runs_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.reports.models import Answer
    from support.cluster.cluster_histories import Act, Outcome
    from support.cluster.run_operator import RunOperator

Object = dict[str, Any]
NAME: Final = "llama"
TAGS: Final = ("sweep", "new data")
NOTES: Final = "first run\nwith the new data"
"""Name that the program gives its run."""
WORKLOAD: Final = "trainer"
_JOB: Final = f"{WORKLOAD}-workers-0"
_CONTAINER: Final = {"name": "train", "ready": True, "image": "train:1", "imageID": "train:1"}


@dataclass
class PlayedProcess:
    """One process of the program, which reports with the token of its pod."""

    reporter: Reporter
    answer: Callable[[], Answer]
    """The answer that the control plane has now: more reports than one in ten seconds are too many."""
    rank: int
    attempt: int
    """As its environment says."""
    ranks: int
    started_s: float
    step: int | None = None
    events: list[packing.Entry] = field(default_factory=list)
    persisted: int = 0
    ended_s: float | None = None
    last_step_s: float = 0.0

    @property
    def leads(self) -> bool:
        """Whether it reports about the run."""
        return self.rank == 0

    def note(self, code: EventCode, now_s: float, step: int = 0) -> None:
        """Record an event of goodput."""
        self.events.append(Event(round(now_s * 1e6), code, step, 0, NAME))

    def set_clock(self, seconds: int) -> None:
        """Record that the clock is set: earlier events move with it."""
        self.events.append(packing.ClockStep(seconds * 1_000_000))

    async def report(self, now_s: float, *, phase: str = "Active", **more: Any) -> None:
        """Report, and wait until the report is persisted."""
        facts: Object = {"v": 1, "incarnation": self.reporter.incarnation, "sent": now_s, "phase": phase, **more}
        facts |= {"rank": self.rank, "worldSize": self.ranks, "attempt": self.attempt}
        facts["host"] = {"name": f"host-{self.rank}"}
        if self.step is not None:
            facts["progress"] = {"step": self.step, "stepTimeSeconds": 0.25, "changed": self.last_step_s}
        self.reporter.sequence += 1
        facts["sequence"] = self.reporter.sequence
        if self.leads:
            facts["run"] = {
                "name": NAME,
                "tags": [*TAGS],
                "notes": NOTES,
                "started": self.started_s,
                "ended": self.ended_s,
            }
            facts["events"] = {"first": self.persisted, "items": packing.pack(self.events[self.persisted :])}
        answer = await self.reporter.post(gzip.compress(json.dumps(facts).encode()))
        assert answer.status == 200, answer
        async with asyncio.timeout(DEADLINE_S):
            while (known := self.answer()).persisted_sequence < self.reporter.sequence:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.02)
        self.persisted = known.persisted_events


class PlayedRun:
    """A run as its history goes on.

    Attributes:
        run_id: Id of the run.
        attempts: Attempts that have begun.
        reported_step: The newest step that a report has.
    """

    def __init__(self, operator: RunOperator, ranks: int) -> None:
        self.operator, self.ranks = operator, ranks
        self.ml = Namespace(operator.cluster, operator.reporting.namespace, "10.0.0.1")
        self.jobset: Object = {}
        self.job: Object = {}
        self.run_id = ""
        self.attempts, self._restarts, self._container_restarts = 0, 0, 0
        self.reported_step: int | None = None
        self._clock_s = 0
        self.is_over = False
        self._processes: list[PlayedProcess] = []
        self._pods: list[Object] = []

    @property
    def now_s(self) -> float:
        """Unix time of the machine."""
        return self.operator.clock.unix_s()

    async def start(self) -> None:
        """Make the JobSet, and let its first attempt run."""
        await make_account(self.ml.cluster, self.ml.name)
        stage = Stage(self.ml, "")
        pod = {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}
        hosts = {"parallelism": self.ranks, "completions": self.ranks, "completionMode": "Indexed", "template": pod}
        jobs = {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": hosts}}]}
        opted_in = {"managed-mldiagnostics-gke": "true"}
        self.jobset = await stage.make("jobset.x-k8s.io/v1alpha2", "JobSet", WORKLOAD, labels=opted_in, spec=jobs)
        self.jobset |= {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
        made = await stage.make("batch/v1", "Job", _JOB, owner=self.jobset, spec=hosts | {"suspend": True})
        self.job = made | {"kind": "Job", "apiVersion": "batch/v1"}
        run = await self.until(lambda run: run["spec"].get("runId"))
        self.run_id = run["spec"]["runId"]
        await self._begin()

    async def act(self, act: Act) -> None:
        """Let one act of the history happen."""
        match act:
            case Train():
                await self._train(act)
            case Silence():
                self.operator.clock.move(act.seconds)
            case SetClock():
                await self._set_clock(act)
            case ReplaceLeader():
                await self.operator.stop(is_killed=act.is_killed)
                await self.operator.lead()
            case Restart():
                await self._restart(act)

    async def end(self, outcome: Outcome) -> None:
        """Let the run end."""
        self.operator.clock.move(1)
        if outcome == "active":
            return
        self.is_over = True
        if outcome in {"Completed", "Failed"}:
            await self._report_end("Completed" if outcome == "Completed" else "Failed", self._processes)
        self.operator.clock.move(1)
        if outcome == "deleted":
            await self._remove_pods()
            path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name=WORKLOAD)
            await self.ml.cluster.delete(path, uid=self.jobset["metadata"]["uid"])
            return
        is_good = outcome in {"Completed", "unreported completion"}
        type_, reason = ("Completed", "AllJobsCompleted") if is_good else ("Failed", "FailedJobs")
        now = format_time(self.operator.clock.now())
        condition = {"type": type_, "status": "True", "reason": reason, "message": "over", "lastTransitionTime": now}
        await self._set_jobset(conditions=[condition])

    async def until(self, holds: Callable[[Object], Any]) -> Object:
        """Wait until the run meets the condition; return it."""
        [run] = await runs_once(self.ml, holds)
        return run

    async def _set_clock(self, act: SetClock) -> None:
        leader = self._processes[0]
        for seconds in (act.seconds, -act.seconds):
            self.operator.clock.move(2)
            self._clock_s += seconds
            leader.set_clock(seconds)
            await leader.report(self._time_of(leader))
            self.reported_step = leader.step

    async def _train(self, act: Train) -> None:
        for _ in range(act.steps):
            self.operator.clock.move(act.each_s)
            for process in self._processes:
                process.step = 0 if process.step is None else process.step + 1
                process.last_step_s = self._time_of(process)
                if process.leads:
                    process.note(EventCode.STEP_START, process.last_step_s, process.step)
        for process in self._processes:
            if process.rank not in act.unreported:
                await process.report(self._time_of(process))
                self.reported_step = process.step if process.leads else self.reported_step

    async def _restart(self, act: Restart) -> None:
        self.operator.clock.move(2)
        if act.is_reported:
            await self._report_end("Failed", self._processes[:1] if act.kind == "in place" else self._processes)
        self.operator.clock.move(1)
        if act.kind == "in place":
            await self._restart_container()
        elif act.kind == "controller":
            self._restarts += 1
            await self._remove_pods()
            await self._set_jobset(ready=0)
            await self._begin()
        else:
            await self._suspend(suspended=True)
            await self._set_jobset(ready=0)
            await self._remove_pods()
            await self.until(lambda run: run["status"]["reason"] == "Suspended")
            self.operator.clock.move(30)
            await self._suspend(suspended=False)
            await self._begin()

    async def _begin(self) -> None:
        """Let an attempt run: its pods, the count of its controller, and its processes."""
        self.attempts, self._container_restarts = self.attempts + 1, 0
        self._pods = [await self._pod(rank) for rank in range(self.ranks)]
        await self._set_jobset(ready=1)
        await self._seen()
        self._processes = [await self._process(rank) for rank in range(self.ranks)]

    async def _restart_container(self) -> None:
        """Let the kubelet restart the container that leads."""
        self.attempts, self._container_restarts = self.attempts + 1, self._container_restarts + 1
        now = format_time(self.operator.clock.now())
        ended = {"exitCode": 3, "reason": "Error", "startedAt": now, "finishedAt": now}
        status = {"state": {"running": {"startedAt": now}}, "lastState": {"terminated": ended}}
        container = _CONTAINER | status | {"restartCount": self._container_restarts}
        path = path_to("", "v1", "pods", namespace=self.ml.name, name=self._pods[0]["metadata"]["name"], sub="status")
        await self.ml.cluster.patch(path, {"status": {"containerStatuses": [container]}})
        await self._seen()
        self._processes[0] = await self._process(0)

    async def _seen(self) -> None:
        """Wait until the operator has seen the newest attempt."""
        number = self.attempts - 1
        await self.until(lambda run: run.get("status", {}).get("attempt") == number and _has_pod(run))

    async def _pod(self, rank: int) -> Object:
        now = format_time(self.operator.clock.now())
        labels = {
            RUN_LABEL: run_label(self.run_id),
            "jobset.sigs.k8s.io/restart-attempt": str(self._restarts),
            "jobset.sigs.k8s.io/jobset-uid": self.jobset["metadata"]["uid"],
            "jobset.sigs.k8s.io/job-index": "0",
            "jobset.sigs.k8s.io/job-global-index": "0",
            "batch.kubernetes.io/job-completion-index": str(rank),
        }
        name = f"{_JOB}-{rank}-{self.attempts}"
        body = builders.pod(name, namespace=self.ml.name, labels=labels, node=f"node-{rank}", owner=self.job)
        body["spec"]["serviceAccountName"] = ACCOUNT
        container = _CONTAINER | {"restartCount": 0, "state": {"running": {"startedAt": now}}}
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        body["status"] |= {"containerStatuses": [container], "conditions": [scheduled]}
        return await self.ml.put(path_to("", "v1", "pods", namespace=self.ml.name), body)

    async def _process(self, rank: int) -> PlayedProcess:
        """Start a process, which reports at once."""
        running = self.operator.reporting
        token = await running.token(self._pods[rank])
        reporter = Reporter(running.session, running.url, token, self.run_id, incarnation=uuid4().hex[:8])
        key = RunKey(self.ml.name, self.run_id)

        def answer() -> Answer:
            return self.operator.reporting.table.answer(key, reporter.incarnation)

        process = PlayedProcess(reporter, answer, rank, self._restarts, self.ranks, 0.0)
        process.started_s = self._time_of(process)
        if process.leads:
            process.note(EventCode.JOB_START, process.started_s)
            self.reported_step = None
        await process.report(process.started_s)
        return process

    async def _report_end(self, phase: str, processes: list[PlayedProcess]) -> None:
        for process in processes:
            process.ended_s = self._time_of(process)
            if process.leads and phase == "Completed":
                process.note(EventCode.JOB_END, process.ended_s)
            failure = {"reason": "UncaughtException", "message": "no data"} if phase == "Failed" else {}
            await process.report(process.ended_s, phase=phase, **failure)
            self.reported_step = process.step if process.leads else self.reported_step

    async def _remove_pods(self) -> None:
        for pod in self._pods:
            await self.ml.remove_pod(pod["metadata"]["name"])

    async def _set_jobset(self, *, ready: int | None = None, **status: Any) -> None:
        if ready is not None:
            parts = {"name": "workers", "ready": ready, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
            status |= {"restarts": self._restarts, "replicatedJobsStatus": [parts]}
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name=WORKLOAD, sub="status")
        await self.ml.cluster.patch(path, {"status": status})

    async def _suspend(self, *, suspended: bool) -> None:
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name=WORKLOAD)
        await self.ml.cluster.patch(path, {"spec": {"suspend": suspended}})

    def _time_of(self, process: PlayedProcess) -> float:
        """Return the time by the clock of a process."""
        return self.now_s + (self._clock_s if process.leads else 0)


def _has_pod(run: Object) -> bool:
    """Return whether the newest attempt has the pod that leads it."""
    attempts = run["status"].get("attempts") or [{}]
    return "podUid" in attempts[-1]
