from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.operating import ANY_PORT, condition, operating, verdict
from support.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from pathlib import Path

    from support.operating import Namespace

pytestmark = pytest.mark.apiserver

LARGE = {"diagon.gke.io/profiler-ports": "9" * 250_000}


async def test_a_namespace_has_a_bounded_number_of_waiting_captures(ml: Namespace, tmp_path: Path) -> None:
    brief = {"podName": "a", "durationMilliseconds": 10}
    policy = replace(ANY_PORT, waiting_per_namespace=2)
    async with operating(ml.cluster, ml.name, tmp_path, policy=policy), FakeProfiler().serving(ml.ip) as server:
        for name in ("first", "second"):
            await ml.capture(name, waitForPodsSeconds=600, **brief)
            status = await ml.until(lambda status: status.get("message"), name)
            assert status["message"].startswith("waiting for pods until 20")
        await ml.capture("third", waitForPodsSeconds=600, **brief)
        status = await ml.finished("third")
        assert verdict(status) == ("Failed", "TooManyWaiting")
        assert "2 of 2 captures of namespace" in status["message"]
        assert "policy.waitingPerNamespace" in status["message"]
        await ml.pod("a", server.port)
        for name in ("first", "second"):
            assert verdict(await ml.finished(name)) == ("Succeeded", "Succeeded")


async def test_pods_with_large_annotations_are_skipped_by_name(ml: Namespace, tmp_path: Path) -> None:
    async with operating(ml.cluster, ml.name, tmp_path), FakeProfiler().serving(ml.ip) as server:
        await ml.pod("good", server.port, labels={"app": "x"})
        for number in range(3):
            await ml.pod(f"hostile-{number}", labels={"app": "x"}, annotations=LARGE)
        selector = {"selector": {"matchLabels": {"app": "x"}}}
        await ml.capture(target=selector, durationMilliseconds=10, minimumCaptured=1, startLeadMilliseconds=0)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "PartlySucceeded")
    assert {result["pod"]: result["reason"] for result in status["results"] if result["state"] == "Skipped"} == {
        f"hostile-{number}": "PortInvalid" for number in range(3)
    }
    assert len(str(status)) < 5000


async def test_a_rejected_look_up_is_a_refusal_by_name(ml: Namespace, tmp_path: Path) -> None:
    async with operating(ml.cluster, ml.name, tmp_path):
        # Valid by the schema of the resource; the API server rejects it as a selector of pods.
        await ml.capture(target={"selector": {"matchLabels": {"a..b/name": "c"}}})
        status = await ml.finished()
    assert verdict(status) == ("Failed", "LookupRejected")
    assert condition(status, "Complete")["message"].startswith(f"pods with labels a..b/name=c in namespace {ml.name}: ")
