from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.captures import planning, volume_share
from mldiagnostics_operator.status_writer import UPDATE_INTERVAL_S
from support.cluster import builders
from support.cluster.definitions import connections
from support.cluster.operating import condition, verdict
from support.servers.profiler_servers import FakeProfiler, answer, busy, plain_tcp, replying, trace

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.operating import Namespace, Operating

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("operator")]

LONG_MS = 30_000
DEADLINE_S = 60


class DiskUsage(NamedTuple):
    """As `shutil.disk_usage` returns it."""

    total: int
    used: int
    free: int


def contents(volume: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in volume.rglob("*") if path.is_file()}


def files(volume: Path) -> set[str]:
    """Unlike `rglob`, `walk` passes over what is deleted meanwhile."""
    return {name for _, _, names in os.walk(volume) for name in names}


def everything(volume: Path) -> set[str]:
    """See `files`; with directories."""
    return {name for _, folders, names in os.walk(volume) for name in (*folders, *names)}


async def test_the_peers_object_profiles_every_pod_that_it_names(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as first, FakeProfiler().serving(ml.ip) as second:
        await ml.pod("trainer-0", first.port)
        await ml.pod("trainer-1", second.port)
        made = await ml.capture(
            podName="trainer-0, trainer-1",
            podNamespace=ml.name,
            capturePort=9999,
            durationSeconds=1,
            profiler="google_cloud_mldiagnostics",
            storageLocation="volume:///out",
        )
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert status["progress"] == "2/2"
    assert status["captureResult"] == {"status": "Succeeded", "outputLocation": "volume:///out"}
    for kind in ("Accepted", "Captured", "Stored", "Complete"):
        assert condition(status, kind)["status"] == "True"
    session = tmp_path / "out" / "plugins" / "profile" / status["sessionId"]
    assert files(session) == {"trainer-0.xplane.pb", "trainer-1.xplane.pb", "capture.json"}
    record = json.loads((session / "capture.json").read_text())
    assert record["uid"] == made["metadata"]["uid"]
    assert [target["state"] for target in record["targets"]] == ["Captured", "Captured"]
    assert record["requested"]["triggerCapture"]["durationSeconds"] == 1
    assert await ml.events(last="CaptureSucceeded") == ["CaptureStarted", "CaptureSucceeded"]


async def test_hosts_start_together_at_the_announced_instant(ml: Namespace) -> None:
    async with FakeProfiler().serving(ml.ip) as first, FakeProfiler().serving(ml.ip) as second:
        await ml.pod("a", first.port)
        await ml.pod("b", second.port)
        for lead_ms in (700, 10_000):  # a request of a busy machine may arrive after the shorter lead
            name = f"lead-{lead_ms}"
            await ml.capture(name, podName="a,b", durationMilliseconds=10, startLeadMilliseconds=lead_ms)
            status = await ml.finished(name)
            starts = {request.opts.start_timestamp_ns for server in (first, second) for request in server.requests}
            assert len(starts) == 1
            if status["startSkewMilliseconds"] < 700 and status["plannedStartTime"] > status["startTime"]:
                break
            for server in (first, second):
                server.requests.clear()
    assert status["startSkewMilliseconds"] < 700
    assert status["deadline"] > status["plannedStartTime"] > status["startTime"]


async def test_a_capture_costs_few_status_writes(
    ml: Namespace, operator: Operating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_SLOW_S", DEADLINE_S)
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(FakeProfiler().serving(ml.ip)) for _ in range(20)]
        for number, server in enumerate(servers):
            await ml.pod(f"trainer-{number}", server.port, labels={"app": "trainer"})
        started_s = time.monotonic()
        await ml.capture(target={"selector": {"matchLabels": {"app": "trainer"}}}, durationMilliseconds=10)
        status = await ml.finished()
        updates = int((time.monotonic() - started_s) / UPDATE_INTERVAL_S)
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert len(status["results"]) == 20
    writes = len(operator.versions["capture"])
    assert writes <= 4 + updates, "created, intent, verdict; the first trace if the hosts are slow"


async def test_each_failure_has_its_reason_and_the_rest_is_captured(ml: Namespace) -> None:
    idle, slow_to_free = FakeProfiler(), FakeProfiler()
    idle.reply = replying(answer(trace(events=0), empty=True))
    slow_to_free.reply = busy(2)
    async with idle.serving(ml.ip), slow_to_free.serving(ml.ip):
        await ml.pod("closed", 1)
        await ml.pod("idle", idle.port)
        await ml.pod("busy", slow_to_free.port)
        await ml.pod("starting", 9999, phase="Pending")
        await ml.capture(podName="closed,idle,busy,starting,absent", durationMilliseconds=10, minimumCaptured=1)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "PartlySucceeded")
    assert {result["pod"]: result["reason"] for result in status["results"]} == {
        "closed": "NothingListens",
        "idle": "EmptyTrace",
        "busy": "Captured",
        "starting": "NotReady",
        "absent": "NotFound",
    }
    assert status["targets"] == {"total": 5, "captured": 1, "failed": 2, "skipped": 2}
    assert condition(status, "Captured")["status"] == "False"


async def test_the_past_is_stored_where_a_program_records_continuously(ml: Namespace) -> None:
    recording, idle = FakeProfiler(), FakeProfiler()
    recording.snapshot = lambda: answer(trace(events=3))
    async with recording.serving(ml.ip), idle.serving(ml.ip):
        await ml.pod("recording", recording.port)
        await ml.pod("idle", idle.port)
        await ml.capture(podName="recording,idle", recording="Past", minimumCaptured=1)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "PartlySucceeded")
    assert {result["pod"]: result["reason"] for result in status["results"]} == {
        "recording": "Captured",
        "idle": "NoContinuousProfiling",
    }
    assert recording.requests == idle.requests == []


async def test_too_few_captured_targets_fail_the_capture(ml: Namespace) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.pod("b", 1)
        await ml.capture(podName="a,b", durationMilliseconds=10, startLeadMilliseconds=0)
        status = await ml.finished()
    assert verdict(status) == ("Failed", "NothingListens")
    assert status["captureResult"]["status"] == "Failed"
    assert "1 of 2 targets captured" in status["message"]
    assert await ml.events(last="CaptureFailed") == ["CaptureStarted", "CaptureFailed"]


@pytest.mark.parametrize(
    ("trigger", "reason", "words"),
    [
        ({"podName": "trainer-1"}, "PodsNotFound", "trainer-0"),
        ({"target": {"workloadRef": {"kind": "Job", "name": "tuner"}}}, "WorkloadNotFound", "trainer"),
        ({"target": {"workloadRef": {"kind": "JobSet", "name": "tuner"}}}, "WorkloadNotFound", "tuner"),
        ({"target": {"selector": {"matchLabels": {"app": "none"}}}}, "NoPodMatches", "app=none"),
        ({"target": {"runRef": {"name": "run"}}}, "RunNotFound", "kubectl get mlruns"),
        ({"podName": "trainer-0", "podNamespace": "kube-system"}, "NamespaceNotAllowed", "kube-system"),
        ({"podName": "trainer-0", "durationSeconds": 3601}, "DurationTooLong", "3600 s"),
        ({"podName": "trainer-0", "storageLocation": "gs://elsewhere/x"}, "StorageNotAllowed", "policy.strictTenancy"),
    ],
)
async def test_a_refusal_names_the_objects_that_exist(
    ml: Namespace, trigger: dict[str, object], reason: str, words: str
) -> None:
    await ml.pod("trainer-0", 9999)
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    await ml.cluster.create(
        path_to("batch", "v1", "jobs", namespace=ml.name), {"metadata": {"name": "trainer"}, "spec": job}
    )
    await ml.capture(**trigger)
    status = await ml.finished()
    assert verdict(status) == ("Failed", reason)
    assert words in status["message"]
    assert condition(status, "Accepted")["status"] == "False"


async def test_a_pod_that_is_not_allowed_is_never_contacted(ml: Namespace) -> None:
    async with FakeProfiler().serving("127.0.0.1") as local, FakeProfiler().serving(ml.ip) as host:
        await ml.pod("loopback", local.port, ip="127.0.0.1")
        await ml.pod("metadata", host.port, ip="169.254.169.254")
        await ml.pod("of-the-host", host.port, host_network=True)
        await ml.capture(podName="loopback,metadata,of-the-host", durationMilliseconds=10)
        status = await ml.finished()
    assert {result["pod"]: result["reason"] for result in status["results"]} == {
        "loopback": "AddressNotAllowed",
        "metadata": "AddressNotAllowed",
        "of-the-host": "HostNetworkNotAllowed",
    }
    assert verdict(status) == ("Failed", "NothingCaptured")
    assert local.requests == host.requests == []


async def test_an_event_warns_of_gpus_whose_processes_a_profile_can_end(ml: Namespace) -> None:
    async with FakeProfiler().serving(ml.ip) as host:
        await ml.pod("a", host.port, gpus=8)
        await ml.pod("b", host.port, gpus=8, env={"XLA_FLAGS": "--xla_gpu_enable_command_buffer="})
        await ml.capture(podName="a,b", durationMilliseconds=10)
        assert verdict(await ml.finished()) == ("Succeeded", "Succeeded")
    assert await ml.events(last="CaptureSucceeded") == ["CaptureStarted", "CommandBuffersActive", "CaptureSucceeded"]


async def test_a_dry_run_reports_the_targets_and_contacts_none(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.pod("b", server.port, phase="Pending")
        await ml.capture(podName="a,b", dryRun=True)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "DryRun")
    assert {result["pod"]: result["reason"] for result in status["results"]} == {"a": "DryRun", "b": "NotReady"}
    assert server.requests == []
    assert files(tmp_path) == set()


async def test_a_session_of_another_capture_is_not_changed(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        trigger = {"podName": "a", "durationMilliseconds": 10, "sessionId": "mine", "storageLocation": "volume:///x"}
        await ml.capture("first", **trigger)
        await ml.finished("first")
        before = contents(tmp_path)
        await ml.capture("second", **trigger)
        status = await ml.finished("second")
    assert verdict(status) == ("Failed", "SessionExists")
    assert contents(tmp_path) == before
    assert len(server.requests) == 1


async def test_an_unwritable_store_fails_the_capture_before_the_job_is_disturbed(ml: Namespace, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.capture(podName="a", storageLocation="volume:///a-file/x")
        status = await ml.finished()
    assert verdict(status) == ("Failed", "StoreMissing")
    assert server.requests == []


async def test_a_namespace_that_has_used_its_share_of_the_volume_gets_no_traces_and_others_do(
    ml: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ml.name / "run").mkdir(parents=True)
    (tmp_path / ml.name / "run/old.xplane.pb").write_bytes(b"x" * 950_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1_000_000, 950_000, 50_000))
    monkeypatch.setattr(volume_share, "COUNT_AGE_S", 0.0)
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.capture(podName="a", durationMilliseconds=10)
        status = await ml.finished()
        assert verdict(status) == ("Failed", "StoreFull")
        assert f"namespace {ml.name}: its files on the volume have" in condition(status, "Complete")["message"]
        assert server.requests == []
        (tmp_path / ml.name).rename(tmp_path / "greedy")
        await ml.capture("honest", podName="a", durationMilliseconds=10)
        assert verdict(await ml.finished("honest")) == ("Succeeded", "Succeeded")


async def test_a_store_that_hangs_fails_the_capture_at_its_deadline(
    ml: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeProfiler().serving(ml.ip) as server, plain_tcp() as silent:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{silent}")
        await ml.pod("a", server.port)
        await ml.capture(podName="a", durationMilliseconds=10, deadlineSeconds=1, storageLocation="gs://hangs/x")
        status = await ml.finished()
    assert verdict(status) == ("Failed", "StoreUnreachable")
    assert server.requests == []


async def test_a_volume_that_hangs_fails_the_capture_at_its_deadline(
    ml: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: answers.wait(DEADLINE_S))
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.capture(podName="a", durationMilliseconds=10, deadlineSeconds=1, storageLocation="volume:///hangs")
        status = await ml.finished()
    answers.set()
    assert verdict(status) == ("Failed", "StoreUnreachable")
    assert server.requests == []


async def test_captures_of_one_pod_follow_each_other(ml: Namespace) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        server.may_end.clear()
        await ml.capture("first", podName="a", durationMilliseconds=10)
        await asyncio.wait_for(server.began.wait(), DEADLINE_S)
        await ml.capture("second", podName="a", durationMilliseconds=10)
        waiting = await ml.until(lambda status: condition(status, "Accepted").get("reason") == "PodBusy", "second")
        assert waiting["phase"] == "Pending"
        server.may_end.set()
        first, second = await ml.finished("first"), await ml.finished("second")
    assert first["phase"] == second["phase"] == "Succeeded"
    assert second["plannedStartTime"] > first["plannedStartTime"]
    assert condition(second, "Accepted")["status"] == "True"


async def test_cancelling_keeps_the_recorded_traces(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.capture(podName="a", durationMilliseconds=LONG_MS)
        await asyncio.wait_for(server.began.wait(), DEADLINE_S)
        await ml.change("capture", cancel=True)
        status = await ml.finished()
    assert verdict(status) == ("Failed", "Cancelled")
    assert status["results"][0]["state"] == "Cancelled"
    assert files(tmp_path) == {"a.xplane.pb", "capture.json"}


async def test_a_capture_can_be_cancelled_while_it_waits(ml: Namespace) -> None:
    await ml.pod("a", 9999, phase="Pending")
    await ml.capture(podName="a", waitForPodsSeconds=600)
    await ml.until(lambda status: condition(status, "Accepted").get("reason") == "WaitingForPods")
    await ml.change("capture", cancel=True)
    assert verdict(await ml.finished()) == ("Failed", "Cancelled")


async def test_a_deleted_capture_ends_and_leaves_no_files(ml: Namespace, tmp_path: Path) -> None:
    quick, slow = FakeProfiler(), FakeProfiler()
    quick.reply = replying(answer(trace()))
    async with quick.serving(ml.ip), slow.serving(ml.ip):
        await ml.pod("quick", quick.port)
        await ml.pod("slow", slow.port)
        await ml.capture(podName="quick,slow", durationMilliseconds=LONG_MS, startLeadMilliseconds=0)
        async with asyncio.timeout(DEADLINE_S):
            while "quick.xplane.pb" not in files(tmp_path) or not slow.requests:  # noqa: ASYNC110 - the disk is polled
                await asyncio.sleep(0.05)
        await ml.delete("capture")
        async with asyncio.timeout(DEADLINE_S):
            while everything(tmp_path):  # noqa: ASYNC110 - the disk is polled
                await asyncio.sleep(0.05)


async def test_a_capture_waits_for_pods_that_are_starting(ml: Namespace) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        pod = await ml.pod("a", server.port, phase="Pending")
        await ml.capture(podName="a", durationMilliseconds=10, waitForPodsSeconds=60)
        waiting = await ml.until(lambda status: condition(status, "Accepted").get("reason") == "WaitingForPods")
        assert waiting["phase"] == "Pending"
        running = {"phase": "Running", "containerStatuses": [{**pod["status"]["containerStatuses"][0]}]}
        running["containerStatuses"][0]["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}, "waiting": None}
        await ml.cluster.patch(
            path_to("", "v1", "pods", namespace=ml.name, name="a", sub="status"), {"status": running}
        )
        assert verdict(await ml.finished()) == ("Succeeded", "Succeeded")


async def test_a_trace_from_another_pod_is_not_stored(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        server.may_end.clear()
        await ml.capture(podName="a", durationMilliseconds=10)
        await asyncio.wait_for(server.began.wait(), DEADLINE_S)
        await ml.remove_pod("a")
        await ml.pod("a", server.port)
        server.may_end.set()
        status = await ml.finished()
    assert verdict(status) == ("Failed", "WrongPod")
    assert files(tmp_path) == {"capture.json"}


async def test_expired_captures_are_deleted_and_their_files_stay(ml: Namespace, tmp_path: Path) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        await ml.capture("brief", podName="a", durationMilliseconds=10, ttlSecondsAfterFinished=1)
        await ml.capture("lasting", podName="a", durationMilliseconds=10)
        await ml.is_gone("brief")
        await ml.finished("lasting")
    assert files(tmp_path / ml.name / "a") == {"a.xplane.pb", "capture.json"}
    assert (await ml.status("lasting"))["phase"] == "Succeeded"


async def test_a_trace_into_the_pod_is_written_by_the_pod(ml: Namespace, tmp_path: Path) -> None:
    server = FakeProfiler()
    server.reply = replying(b"")
    async with server.serving(ml.ip):
        await ml.pod("a", server.port)
        await ml.capture(podName="a", durationMilliseconds=10, storageLocation="/profiles/x")
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert server.requests[0].repository_root == "/profiles/x/plugins/profile"
    assert not server.requests[0].emit_xspace
    assert status["captureResult"]["outputLocation"] == "/profiles/x"
    assert status["results"][0]["file"] == f"/profiles/x/plugins/profile/{status['sessionId']}/a.xplane.pb"
    assert files(tmp_path) == set()


async def test_a_leader_that_stops_accepting_finishes_running_captures_only(ml: Namespace, operator: Operating) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        server.may_end.clear()
        await ml.capture("running", podName="a", durationMilliseconds=10)
        await asyncio.wait_for(server.began.wait(), DEADLINE_S)
        await ml.capture("queued", podName="a", durationMilliseconds=10)
        await ml.until(lambda status: status.get("phase") == "Pending", "queued")
        operator.captures.stop_accepting()
        await ml.capture("late", podName="a", durationMilliseconds=10)
        server.may_end.set()
        await asyncio.wait_for(operator.captures.drain(), DEADLINE_S)
        assert verdict(await ml.status("running")) == ("Succeeded", "Succeeded")
    assert (await ml.status("queued"))["phase"] == "Pending"
    assert await ml.status("late") == {}
    assert len(server.requests) == 1


async def test_an_object_that_cannot_be_read_gets_a_final_status(ml: Namespace, operator: Operating) -> None:
    await ml.capture(podName="nobody")
    await ml.finished()
    body = await ml.cluster.get(f"{connections(ml.name)}/capture")
    unreadable = {**body, "spec": {"triggerCapture": {"podName": 7}}, "status": {}}
    async with asyncio.timeout(DEADLINE_S):
        await operator.captures.drain()  # the task of the finished capture still writes its event
        operator.captures.observe(unreadable, "gone")
        operator.captures.observe(unreadable, "seen")
        await operator.captures.drain()
    status = await ml.status()
    assert verdict(status) == ("Failed", "InvalidSpec")
    assert "podName" in status["message"]


async def test_a_capture_that_is_gone_before_its_start_is_not_started(ml: Namespace, operator: Operating) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        await ml.pod("a", server.port)
        body = builders.connection("ghost", namespace=ml.name, podName="a", durationMilliseconds=10)
        operator.captures.observe(body, "seen")
        operator.captures.observe(body, "gone")
        await asyncio.wait_for(operator.captures.drain(), DEADLINE_S)
    assert server.requests == []


async def test_a_capture_that_left_the_watch_before_its_task_ended_is_forgotten(
    ml: Namespace, operator: Operating
) -> None:
    await ml.capture(podName="nobody")
    await ml.finished()
    body = await ml.cluster.get(f"{connections(ml.name)}/capture")
    unreadable = {**body, "spec": {"triggerCapture": {"podName": 7}}, "status": {}}
    operator.captures.observe(unreadable, "gone")
    async with asyncio.timeout(DEADLINE_S):
        await operator.captures.drain()
        for event in ("seen", "gone", "seen"):
            operator.captures.observe(unreadable, event)
            if event == "gone":
                await operator.captures.drain()
        await operator.captures.drain()
    assert await ml.events(last="CaptureFailed") == ["CaptureFailed"] * 3
