from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.operating import condition, verdict
from support.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from pathlib import Path

    from support.operating import Namespace

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("operator")]


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
    assert {path.name for path in session.iterdir()} == {"trainer-0.xplane.pb", "trainer-1.xplane.pb", "capture.json"}
    record = json.loads((session / "capture.json").read_text())
    assert record["uid"] == made["metadata"]["uid"]
    assert [target["state"] for target in record["targets"]] == ["Captured", "Captured"]
    assert record["requested"]["triggerCapture"]["durationSeconds"] == 1
