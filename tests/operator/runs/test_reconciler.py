"""The reconciler on a real API server, with the test as its only worker."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.disruptions import DisruptionCause, Evidence
from mldiagnostics_api.reports.models import read_report
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.v1alpha1 import RunSession
from mldiagnostics_api.workloads.kinds import workload_of
from mldiagnostics_kube.client.apiserver import Conflict, path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.runs import reconciler
from mldiagnostics_operator.runs import run as runs_module
from mldiagnostics_operator.runs.keys import ObjectKey
from mldiagnostics_operator.runs.run import run_manifest
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S
from support.cluster.run_world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_api.runs.facts import RunFacts
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_operator.runs.run import Run

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def idle(cluster: ApiClient, namespace: str, tmp_path: Path) -> World:
    """A controller over a namespace that does not run."""
    await install(cluster, RUNS)
    return World.over(cluster, namespace, tmp_path)


async def make(idle: World, name: str, **status: Any) -> None:
    """Make a run with a status, and hand it over as a watch does."""
    path = path_to(*RUNS.gvr, namespace=idle.ml.name)
    body = await idle.ml.cluster.create(path, run_manifest(name, idle.ml.name, f"id-{name}"))
    if status:
        body = await idle.ml.cluster.patch(f"{path}/{name}/status", {"status": status})
    idle.controller.handlers.on_run(body)


async def statuses(idle: World) -> list[tuple[str, dict[str, Any]]]:
    """Return names and statuses, in the order of the last writes."""
    path = path_to(*RUNS.gvr, namespace=idle.ml.name)
    runs = await idle.ml.cluster.items(path, dict)
    runs.sort(key=lambda run: int(run["metadata"]["resourceVersion"]))
    return [(run["metadata"]["name"], run["status"]) for run in runs]


def report(idle: World, name: str, *, sequence: int, step: int, phase: str = "Active") -> None:
    """Report a run as its process does."""
    now_s = utc_now().timestamp()
    document = {"v": 1, "incarnation": "00000001", "sequence": sequence, "sent": now_s, "rank": 0, "phase": phase}
    body = read_report(document | {"progress": {"step": step, "changed": now_s}})
    idle.controller.reports.apply(
        RunKey(idle.ml.name, f"id-{name}"), body, Sender(idle.ml.name, "someone", "pod", "uid", "node"), now_s
    )


async def work(idle: World, *, keys: int) -> None:
    """Reconcile some keys."""
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(keys):
            key = await idle.controller.reconciler.queue.get()
            try:
                await idle.controller.reconciler.reconcile(key)
            finally:
                idle.controller.reconciler.queue.done(key)


async def with_status(idle: World, name: str) -> None:
    """Wait until a run has a status."""
    path = path_to(*RUNS.gvr, namespace=idle.ml.name, name=name)
    async with asyncio.timeout(DEADLINE_S):
        while not (await idle.ml.cluster.get(path)).get("status"):  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(0.05)


async def make_job(idle: World, labels: dict[str, str]) -> None:
    """Make a Job `trainer` without pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "trainer", "labels": labels}, "spec": {"template": template}}
    await idle.ml.cluster.create(path_to("batch", "v1", "jobs", namespace=idle.ml.name), body)


@asynccontextmanager
async def watching(idle: World) -> AsyncIterator[None]:
    """Run the watches of the controller, once their first lists are there."""
    watches = idle.controller.reconciler.watches
    tasks = [asyncio.create_task(watches.runs.run()), asyncio.create_task(watches.run())]
    try:
        async with asyncio.timeout(DEADLINE_S):
            await watches.runs.until_installed()
            await watches.workloads.until_settled()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def reconciling(idle: World) -> AsyncIterator[None]:
    """Run the watches and all workers of the controller."""
    async with watching(idle):
        task = asyncio.create_task(idle.controller.reconciler.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def logged(caplog: pytest.LogCaptureFixture, message: str) -> None:
    """Wait until a message is in the log."""
    async with asyncio.timeout(DEADLINE_S):
        while message not in caplog.text:  # noqa: ASYNC110 - a worker writes it
            await asyncio.sleep(0.02)


async def test_a_change_of_phase_overtakes_other_changes(idle: World) -> None:
    for number in range(3):
        await make(idle, f"run-{number}", phase="Pending", reason="Created")
    await make(idle, "run-3")
    await work(idle, keys=7)  # three of them wait for the news of the fourth
    written = await statuses(idle)
    assert [name for name, _ in written] == ["run-3", "run-0", "run-1", "run-2"]
    assert {status["reason"] for _, status in written} == {"NotReported"}


async def test_a_run_that_raises_any_error_is_tried_again_and_stops_no_other(
    idle: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    is_faulty, facts = True, runs_module.Run.facts

    def failing(run: Run, *args: Any, **options: Any) -> RunFacts:
        if is_faulty and run.meta.name == "faulty":
            raise KeyError("faulty")
        return facts(run, *args, **options)

    monkeypatch.setattr(reconciler, "FAULT_RETRY_S", 0.1)
    monkeypatch.setattr(runs_module.Run, "facts", failing)
    async with reconciling(idle):
        for name in ("faulty", "other"):
            await make(idle, name)
        await with_status(idle, "other")
        assert "run " + idle.ml.name + "/faulty: cannot be reconciled" in caplog.text
        is_faulty = False
        await with_status(idle, "faulty")


async def test_a_workload_whose_object_a_quota_rejects_gets_one_when_there_is_room(
    idle: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reconciler, "FAULT_RETRY_S", 0.1)
    await idle.limit_runs(0)
    async with reconciling(idle):
        await make_job(idle, {"managed-mldiagnostics-gke": "true"})
        await logged(caplog, f"run Job {idle.ml.name}/trainer: cannot be reconciled: ")
        assert "exceeded quota" in caplog.text
        await idle.limit_runs(1)
        async with asyncio.timeout(DEADLINE_S):
            while not idle.controller.reconciler.runs.all:  # noqa: ASYNC110 - a worker adds it
                await asyncio.sleep(0.02)
    [run] = await idle.ml.cluster.items(path_to(*RUNS.gvr, namespace=idle.ml.name), dict)
    assert run["spec"]["workloadRef"]["name"] == "trainer"


async def test_a_workload_in_a_namespace_that_is_deleted_is_not_tried_again(
    idle: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await make_job(idle, {"managed-mldiagnostics-gke": "true"})
    await idle.ml.cluster.request("DELETE", path_to("", "v1", "namespaces", name=idle.ml.name))
    async with reconciling(idle):
        await logged(caplog, f"run Job {idle.ml.name}/trainer: cannot be reconciled: ")
        queue = idle.controller.reconciler.queue
        await queue.drain()
        assert not queue._due


async def test_the_evidence_of_a_run_stays_when_another_object_of_the_run_id_is_deleted(idle: World) -> None:
    runs, pods = idle.controller.reconciler.runs, idle.controller.reconciler.watches.pods
    path = path_to(*RUNS.gvr, namespace=idle.ml.name)
    for name in ("trainer", "stray"):
        idle.controller.handlers.on_run(await idle.ml.cluster.create(path, run_manifest(name, idle.ml.name, "shared")))
    trainer, stray = runs.all
    evidence = Evidence(
        cause=DisruptionCause.PREEMPTION, time=utc_now(), subject="pod 'trainer-0'", detail="was preempted"
    )
    pods.note(trainer.pods_key, evidence)
    idle.controller.reconciler.forget(stray)
    followed = pods.of(trainer.pods_key)
    assert followed is not None
    assert [*followed.evidence.values()] == [evidence]


async def test_a_change_that_nobody_waits_for_is_written_after_the_interval(
    idle: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(idle, "trainer")
    await work(idle, keys=1)
    idle.exchange.note_sessions(idle.ml.name, {"id-trainer": RunSession(id="s", state="Running")})
    await work(idle, keys=1)
    [(_, status)] = await statuses(idle)
    assert "profileSessions" not in status
    monkeypatch.setattr(runs_module, "UPDATE_INTERVAL_S", 0.0)
    idle.controller.reconciler.queue.add(ObjectKey(idle.ml.name, "trainer"))
    await work(idle, keys=1)
    [(_, status)] = await statuses(idle)
    assert [session["id"] for session in status["profileSessions"]] == ["s"]


async def test_the_end_of_a_run_comes_before_the_steps_of_others(idle: World) -> None:
    names = [f"run-{number}" for number in range(5)]
    for name in names:
        await make(idle, name)
        report(idle, name, sequence=1, step=1)
    await work(idle, keys=len(names))
    queue = idle.controller.reconciler.queue
    for name in names:
        report(idle, name, sequence=2, step=2)
    report(idle, names[-1], sequence=3, step=2, phase="Completed")
    async with asyncio.timeout(DEADLINE_S):
        keys = [await queue.get() for _ in names]
    assert keys[0] == ObjectKey(idle.ml.name, names[-1])
    assert {key.title for key in keys} == {ObjectKey(idle.ml.name, name).title for name in names}


async def test_the_event_of_a_status_that_was_written_is_no_news(idle: World) -> None:
    await make(idle, "trainer")
    await work(idle, keys=1)
    path = path_to(*RUNS.gvr, namespace=idle.ml.name, name="trainer")
    handlers, queue = idle.controller.handlers, idle.controller.reconciler.queue
    handlers.on_run(await idle.ml.cluster.get(path))
    assert not queue.has_news(idle.ml.name)
    handlers.on_run(await idle.ml.cluster.patch(path, {"spec": {"displayName": "a name"}}))
    assert queue.has_news(idle.ml.name)


async def test_a_new_leader_waits_for_the_processes_of_a_former_one(idle: World) -> None:
    heartbeat = (utc_now() - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await make(idle, "trainer", phase="Active", reason="Running", lastHeartbeatTime=heartbeat)
    await work(idle, keys=1)
    [(_, status)] = await statuses(idle)
    assert (status["phase"], status["message"]) == ("Active", "its processes report")


async def test_a_run_of_the_peers_client_waits_for_its_workload(idle: World) -> None:
    run, now_s = RunKey(idle.ml.name, "id-trainer"), utc_now().timestamp()
    creation = idle.controller.reconciler._creation
    creation.note_listed()
    idle.controller.reports.apply_peer(run, alias="uuid", name="theirs", phase="Active", storage="", received=now_s)
    assert creation.unrecorded(run) is None
    later = RunKey(idle.ml.name, "id-other")
    idle.controller.reports.apply(
        later, read_report({"v": 1, "incarnation": "00000001", "sequence": 1, "sent": now_s}), Sender("x", "y"), now_s
    )
    assert creation.unrecorded(later) is not None


async def test_a_status_that_another_process_changed_is_decided_again(idle: World) -> None:
    await make(idle, "trainer")
    path = path_to(*RUNS.gvr, namespace=idle.ml.name, name="trainer")
    newer = await idle.ml.cluster.patch(f"{path}/status", {"status": {"phase": "Active", "reason": "Running"}})
    with pytest.raises(Conflict):
        await work(idle, keys=1)
    idle.controller.handlers.on_run(newer)
    await work(idle, keys=1)
    [(_, status)] = await statuses(idle)
    assert status["reason"] == "NotReported"


@pytest.mark.parametrize("opted_in_late", [True, False])
async def test_a_workload_that_changes_while_its_key_waits_is_decided_as_it_is_then(
    idle: World, *, opted_in_late: bool
) -> None:
    kind = workload_of("Job", "batch/v1")
    assert kind is not None
    labels = [{"managed-mldiagnostics-gke": value} for value in ("false", "true")]
    before, after = labels if opted_in_late else labels[::-1]
    path = path_to("batch", "v1", "jobs", namespace=idle.ml.name)
    workloads = idle.controller.reconciler.watches.workloads
    async with watching(idle):
        await make_job(idle, before)
        for labels_of_job in (before, after):
            await idle.ml.cluster.patch(f"{path}/trainer", {"metadata": {"labels": labels_of_job}})
            async with asyncio.timeout(DEADLINE_S):
                while not (job := workloads.find(kind, idle.ml.name, "trainer")) or job.labels != labels_of_job:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        await work(idle, keys=1)
    runs = await idle.ml.cluster.items(path_to(*RUNS.gvr, namespace=idle.ml.name), dict)
    assert [run["spec"]["workloadRef"]["name"] for run in runs] == (["trainer"] if opted_in_late else [])


async def test_a_workload_gets_another_object_if_its_own_is_deleted_before_it_was_observed(idle: World) -> None:
    path = path_to(*RUNS.gvr, namespace=idle.ml.name)
    async with watching(idle):
        await make_job(idle, {"managed-mldiagnostics-gke": "true"})
        await work(idle, keys=1)
        [first] = idle.controller.reconciler.runs.all
        await idle.ml.cluster.delete(f"{path}/{first.meta.name}", uid=first.meta.uid)
        async with asyncio.timeout(DEADLINE_S):
            while not first.deleted:  # noqa: ASYNC110 - the watch sets it
                await asyncio.sleep(0.02)
        await work(idle, keys=2)
    [second] = await idle.ml.cluster.items(path, dict)
    assert second["metadata"]["name"] == first.meta.name
    assert second["metadata"]["uid"] != first.meta.uid
