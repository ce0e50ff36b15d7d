from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.cluster.operating import Namespace, condition, operator_process, verdict
from support.servers.profiler_servers import FakeProfiler, answer, replying, trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from cluster.envtest import ApiServer
    from support.cluster.operating import Operating, Process

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60


class Site:
    """A namespace, a volume, and operators that come and go over them."""

    def __init__(self, ml: Namespace, kubeconfig: Path, folder: Path) -> None:
        self.ml = ml
        self.volume = folder / "volume"
        self.volume.mkdir()
        self._kubeconfig = kubeconfig
        self._log = folder / "operator.log"

    def operator(self, volume: str = "volume", **identity: str) -> AbstractAsyncContextManager[Process]:
        folder = self.volume.with_name(volume)
        folder.mkdir(exist_ok=True)
        return operator_process(self._kubeconfig, self.ml.name, folder, log=self._log, **identity)

    def sessions(self) -> dict[str, set[str]]:
        """Files by session; unlike `rglob`, `walk` passes over a directory that is deleted meanwhile."""
        return {Path(folder).name: set(files) for folder, _, files in os.walk(self.volume) if files}

    async def stored(self, name: str) -> None:
        """Wait for a file."""
        async with asyncio.timeout(DEADLINE_S):
            while not any(name in files for files in self.sessions().values()):  # noqa: ASYNC110 - the disk is polled
                await asyncio.sleep(0.05)


@pytest.fixture
def site(ml: Namespace, api_server: ApiServer, tmp_path: Path) -> Site:
    return Site(ml, api_server.kubeconfig, tmp_path)


@asynccontextmanager
async def two_pods(ml: Namespace) -> AsyncIterator[tuple[FakeProfiler, FakeProfiler]]:
    async with FakeProfiler().serving(ml.ip) as first, FakeProfiler().serving(ml.ip) as second:
        await ml.pod("a", first.port)
        await ml.pod("b", second.port)
        yield first, second


def running(status: dict[str, Any]) -> bool:
    return status.get("phase") == "Running"


async def test_after_a_kill_before_the_start_the_capture_goes_on_as_planned(site: Site) -> None:
    async with two_pods(site.ml) as (first, _):
        # A loaded machine needs half of the time until the start for the next operator.
        await site.ml.capture(podName="a,b", durationMilliseconds=100, startLeadMilliseconds=40_000)
        async with site.operator() as operator:
            intent = await site.ml.until(running)
            await asyncio.wait_for(first.began.wait(), DEADLINE_S)
            await operator.kill()
        first.requests.clear()
        async with site.operator():
            status = await site.ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    for kept in ("sessionId", "plannedStartTime", "deadline", "startTime"):
        assert status[kept] == intent[kept]
    assert (status["attempt"], status["holder"] == intent["holder"]) == (1, False)
    assert site.sessions() == {status["sessionId"]: {"a.xplane.pb", "b.xplane.pb", "capture.json"}}
    assert len(first.requests) >= 1


async def test_after_a_kill_while_recording_the_capture_is_retried(site: Site) -> None:
    async with two_pods(site.ml) as (first, second):
        for server in (first, second):
            server.may_end.clear()
        await site.ml.capture(podName="a,b", durationMilliseconds=10, startLeadMilliseconds=0)
        async with site.operator() as operator:
            await asyncio.wait_for(asyncio.gather(first.began.wait(), second.began.wait()), DEADLINE_S)
            intent = await site.ml.status()
            await operator.kill()
        for server in (first, second):
            server.may_end.set()
        async with site.operator():
            status = await site.ml.finished()
            events = await site.ml.events(last="CaptureSucceeded")
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert (status["attempt"], status["sessionId"]) == (2, f"{intent['sessionId']}-2")
    assert site.sessions()[status["sessionId"]] == {"a.xplane.pb", "b.xplane.pb", "capture.json"}
    assert "CaptureRetried" in events


async def test_a_capture_that_is_deleted_in_its_second_attempt_leaves_no_files(site: Site) -> None:
    async with two_pods(site.ml) as (first, second):
        await site.ml.capture(podName="a,b", durationMilliseconds=30_000, startLeadMilliseconds=0)
        async with site.operator() as operator:
            await asyncio.wait_for(asyncio.gather(first.began.wait(), second.began.wait()), DEADLINE_S)
            await operator.kill()
        assert len(site.sessions()) == 1
        async with site.operator():
            await site.ml.until(lambda status: status["attempt"] == 2)
            assert len(site.sessions()) == 2
            await site.ml.delete("capture")
            async with asyncio.timeout(DEADLINE_S):
                while site.sessions():  # noqa: ASYNC110 - the disk is polled
                    await asyncio.sleep(0.05)


async def test_after_a_kill_with_some_traces_stored_the_other_targets_are_interrupted(site: Site) -> None:
    async with two_pods(site.ml) as (first, second):
        first.reply = replying(answer(trace()))
        await site.ml.capture(
            podName="a,b", durationMilliseconds=30_000, startLeadMilliseconds=0, minimumCaptured="50%"
        )
        async with site.operator() as operator:
            await asyncio.wait_for(second.began.wait(), DEADLINE_S)
            await site.stored("a.xplane.pb")
            await operator.kill()
        async with site.operator():
            status = await site.ml.finished()
    assert verdict(status) == ("Succeeded", "PartlySucceeded")
    assert {result["pod"]: result["reason"] for result in status["results"]} == {"a": "Captured", "b": "Interrupted"}
    assert status["attempt"] == 1
    assert len(second.requests) == 1
    assert site.sessions() == {status["sessionId"]: {"a.xplane.pb", "capture.json"}}
    record = json.loads(next(site.volume.rglob("capture.json")).read_text())
    assert {target["pod"]: target["state"] for target in record["targets"]} == {"a": "Captured", "b": "Failed"}


async def test_after_a_kill_while_waiting_the_capture_goes_on_waiting(site: Site) -> None:
    async with FakeProfiler().serving(site.ml.ip) as server:
        await site.ml.pod("a", server.port, phase="Pending")
        await site.ml.capture(podName="a", durationMilliseconds=10, waitForPodsSeconds=300)
        async with site.operator() as operator:
            await site.ml.until(lambda status: condition(status, "Accepted"))
            await operator.kill()
        await site.ml.remove_pod("a")
        await site.ml.pod("a", server.port)
        async with site.operator():
            assert verdict(await site.ml.finished()) == ("Succeeded", "Succeeded")


async def test_a_second_replica_takes_over_from_a_killed_leader(site: Site) -> None:
    async with two_pods(site.ml) as (first, second):
        uids = {}
        for name in ("operator-a", "operator-b"):
            made = await site.ml.pod(name)
            uids[name] = made["metadata"]["uid"]
        for server in (first, second):
            server.may_end.clear()
        await site.ml.capture(podName="a,b", durationMilliseconds=10, startLeadMilliseconds=0)
        async with site.operator(pod="operator-a", uid=uids["operator-a"]) as leader:
            await asyncio.wait_for(asyncio.gather(first.began.wait(), second.began.wait()), DEADLINE_S)
            async with site.operator(pod="operator-b", uid=uids["operator-b"]):
                await leader.kill()
                for server in (first, second):
                    server.may_end.set()
                await site.ml.remove_pod("operator-a")
                status = await site.ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert status["holder"].startswith(f"operator-b/{uids['operator-b']}/")
    assert status["attempt"] == 2


async def test_a_trace_on_the_volume_of_a_killed_leader_is_reported_and_not_recorded_again(site: Site) -> None:
    async with two_pods(site.ml) as (first, second):
        first.reply = replying(answer(trace()))
        uids = {}
        for name in ("operator-a", "operator-b"):
            uids[name] = (await site.ml.pod(name))["metadata"]["uid"]
        await site.ml.capture(podName="a,b", durationMilliseconds=30_000, startLeadMilliseconds=0)
        async with site.operator(pod="operator-a", uid=uids["operator-a"]) as leader:
            await asyncio.wait_for(second.began.wait(), DEADLINE_S)
            await site.ml.until(lambda status: status["targets"]["captured"] == 1)
            await leader.kill()
        await site.ml.remove_pod("operator-a")
        async with site.operator("another-volume", pod="operator-b", uid=uids["operator-b"]):
            status = await site.ml.finished()
    assert verdict(status) == ("Failed", "Interrupted")
    assert {result["pod"]: result["reason"] for result in status["results"]} == {
        "a": "StoreNotShared",
        "b": "Interrupted",
    }
    assert "operator operator-a ended" in status["message"]
    assert (status["attempt"], len(first.requests), len(second.requests)) == (1, 1, 1)


async def test_a_capture_goes_on_while_the_api_server_restarts(
    ml: Namespace, operator: Operating, api_server: ApiServer
) -> None:
    assert operator.captures
    async with two_pods(ml) as (first, second):
        await ml.capture(podName="a,b", durationMilliseconds=2000, startLeadMilliseconds=0)
        await asyncio.wait_for(asyncio.gather(first.began.wait(), second.began.wait()), DEADLINE_S)
        await asyncio.to_thread(api_server.restart)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert len(first.requests) == len(second.requests) == 1


async def test_a_capture_goes_on_while_etcd_restarts(ml: Namespace, operator: Operating, api_server: ApiServer) -> None:
    assert operator.captures
    async with two_pods(ml) as (first, second):
        await ml.capture(podName="a,b", durationMilliseconds=2000, startLeadMilliseconds=0)
        await asyncio.wait_for(asyncio.gather(first.began.wait(), second.began.wait()), DEADLINE_S)
        await asyncio.to_thread(api_server.restart_etcd)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert len(first.requests) == len(second.requests) == 1
