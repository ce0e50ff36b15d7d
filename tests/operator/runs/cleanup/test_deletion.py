"""Deletion of runs with their files, on a real API server and a volume."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.names import ARTIFACTS_FINALIZER
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.runs.cleanup import deletion
from mldiagnostics_operator.runs.cleanup.artifacts import RunArtifacts
from mldiagnostics_operator.runs.cleanup.deletion import RunDeletions
from mldiagnostics_operator.runs.run import run_manifest
from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
from mldiagnostics_operator.runs.status.write_rate import WriteRate
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from pathlib import Path

    from mldiagnostics_kube.client.credentials import Credentials
    from support.cluster.api_servers import ApiServer

pytestmark = pytest.mark.apiserver

SOON = Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2)


class Scene:
    """Runs of a namespace, and their files on a volume."""

    def __init__(self, cluster: ApiClient, namespace: str, volume: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.volume = volume
        self.path = path_to(*RUNS.gvr, namespace=namespace)

    async def make(self, name: str, *, phase: str, owner: str = "", marked: bool = True) -> None:
        """Create a run with a record in its directory."""
        body = run_manifest(name, self.namespace, f"run-{name}")
        body["spec"]["retention"] = {"deleteArtifacts": marked}
        await self.cluster.create(self.path, body)
        await self.cluster.patch(f"{self.path}/{name}/status", {"status": {"phase": phase}})
        file = self.volume / f"run-{name}" / "run.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"runId": f"run-{name}", "namespace": owner or self.namespace}))

    async def get(self, name: str) -> dict[str, Any]:
        with suppress(NotFound):
            return await self.cluster.get(f"{self.path}/{name}")
        return {}

    async def until(self, holds: Callable[[dict[str, Any]], bool], name: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(await self.get(name)):  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.05)

    async def delete(self, name: str) -> str:
        """Delete a run that is held, wait until it is gone, and return the event of its files."""
        await self.until(held, name)
        await self.cluster.request("DELETE", f"{self.path}/{name}")
        await self.until(lambda body: not body, name)
        events = path_to("", "v1", "events", namespace=self.namespace)
        listed = await self.cluster.items(events, dict, fields=f"involvedObject.name={name}")
        return "; ".join(f"{event['reason']}: {event['message']}" for event in listed)

    def files(self) -> set[str]:
        return {path.parent.name for path in self.volume.rglob("run.json")}


def held(body: dict[str, Any]) -> bool:
    return ARTIFACTS_FINALIZER in body["metadata"].get("finalizers", ())


def deletions_of(cluster: ApiClient, namespace: str, storage: Storage) -> RunDeletions:
    return RunDeletions(
        cluster,
        [namespace],
        RunArtifacts(storage, Policy()),
        WriteRate(),
        OperatorMetrics(),
        records=ClusterRecords(storage, Policy(), utc_now),
        me="operator/uid/1",
        clock=utc_now,
        backoff=SOON,
    )


def is_deleted(body: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in body["metadata"]


@pytest.fixture
async def scene(
    cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    await install(cluster, RUNS)
    monkeypatch.setattr(deletion, "TRIES_S", (0.1, 0.1))
    monkeypatch.setattr(deletion, "POLL_S", 0.1)
    storage = Storage(tmp_path)
    deletions = deletions_of(cluster, namespace, storage)
    running = asyncio.create_task(deletions.run())
    yield Scene(cluster, namespace, tmp_path)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    storage.close()


async def test_the_files_go_with_a_marked_run_and_stay_with_others(scene: Scene) -> None:
    await scene.make("ended", phase="Completed")
    await scene.make("foreign", phase="Failed", owner="victim")
    await scene.make("plain", phase="Completed", marked=False)
    await scene.make("unmarked", phase="Completed")
    event = await scene.delete("ended")
    assert event == "ArtifactsDeleted: Deleted 1 file below volume:///run-ended"
    assert (await scene.delete("foreign")).startswith("ArtifactsKept: ")
    await scene.until(held, "unmarked")
    await scene.cluster.patch(f"{scene.path}/unmarked", {"spec": {"retention": {"deleteArtifacts": False}}})
    await scene.until(lambda body: not held(body), "unmarked")
    for name in ("plain", "unmarked"):
        await scene.cluster.request("DELETE", f"{scene.path}/{name}")
        await scene.until(lambda body: not body, name)
    assert scene.files() == {"run-foreign", "run-plain", "run-unmarked"}


async def test_a_run_that_goes_on_keeps_its_files_until_it_ends(scene: Scene) -> None:
    await scene.make("active", phase="Active")
    await scene.until(held, "active")
    await scene.cluster.request("DELETE", f"{scene.path}/active")
    await scene.until(is_deleted, "active")
    assert scene.files() == {"run-active"}
    await scene.cluster.patch(f"{scene.path}/active/status", {"status": {"phase": "Failed"}})
    await scene.until(lambda body: not body, "active")
    assert scene.files() == set()


async def test_storage_that_refuses_holds_the_object_for_a_few_tries_only(scene: Scene) -> None:
    await scene.make("stuck", phase="Completed")
    (scene.volume / "run-stuck").rename(scene.volume / "elsewhere")
    (scene.volume / "run-stuck").symlink_to(scene.volume / "elsewhere")
    event = await scene.delete("stuck")
    assert event.startswith("ArtifactsKept: Files of the run are left in its storage: the storage refuses: ")
    assert scene.files() == {"elsewhere"}


class LateReads(ApiClient):
    """Deletes a held run once it has read it, and returns what it read after a watch has delivered the deletion."""

    def __init__(self, access: Credentials, *, is_trusted: bool = True) -> None:
        super().__init__(access, is_trusted=is_trusted)
        self.delivered = asyncio.Event()

    async def get(self, path: str, **options: Any) -> dict[str, Any]:
        body = await super().get(path, **options)
        if held(body) and not is_deleted(body):
            await self.request("DELETE", path)
            async with asyncio.timeout(DEADLINE_S):
                await self.delivered.wait()
        return body

    async def watch(self, *selected: Any, **options: Any) -> AsyncGenerator[dict[str, Any]]:
        async with aclosing(super().watch(*selected, **options)) as events:
            async for event in events:
                yield event
                if is_deleted(event["object"]):
                    self.delivered.set()


async def test_a_deletion_while_its_run_is_read_is_not_missed(
    api_server: ApiServer, cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install(cluster, RUNS)
    monkeypatch.setattr(deletion, "POLL_S", 0.1)
    scene = Scene(cluster, namespace, tmp_path)
    await scene.make("ended", phase="Completed")
    storage = Storage(tmp_path)
    late = await LateReads.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    running = asyncio.create_task(deletions_of(late, namespace, storage).run())
    try:
        await scene.until(lambda body: not body, "ended")
        assert scene.files() == set()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await late.aclose()
        storage.close()
