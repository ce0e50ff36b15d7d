from __future__ import annotations

import asyncio
import signal
import ssl
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.identity import run_id
from mldiagnostics_api.names import INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION, RUN_LABEL
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_webhook.server import MAX_BODIES_BYTES, MAX_BODY_BYTES
from support import builders, kinds
from support.reviews import LABEL
from support.webhook_process import (
    CLUSTER_NAME,
    CONFIGURATIONS,
    DEADLINE_S,
    configuration,
    dry_run,
    injected,
    registered,
    webhook_process,
)
from support.wire import wire_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from support.stage import Object, Stage
    from support.webhook_process import Process

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def process(api_server: ApiServer, tmp_path: Path) -> AsyncIterator[Process]:
    async with webhook_process(api_server.kubeconfig, tmp_path) as one:
        yield one


async def job(stage: Stage, name: str, *, labels: dict[str, str] | None = None) -> Object:
    """A Job without pods yet."""
    spec = {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}
    return await stage.make("batch/v1", "Job", name, labels=labels, spec=spec)


async def create(stage: Stage, owner: Object | None = None, name: str = "", **parts: Any) -> Object:
    """Create a pod as a controller does; gives what became of it."""
    metadata: dict[str, Any] = {"name": name} if name else {"generateName": "pod-"}
    if owner:
        metadata["ownerReferences"] = [
            builders.owned(owner["metadata"]["name"], "Job", "batch/v1", uid=owner["metadata"]["uid"])
        ]
    body = {"metadata": metadata | parts, "spec": {"containers": [{"name": "train", "image": "train:1"}]}}
    return await stage.ml.cluster.create(path_to("", "v1", "pods", namespace=stage.ml.name), body)


async def told(stage: Stage, owner: Object) -> Object:
    """Create pods until one is told of its run; gives that one. The API server learns of labels in its own time."""
    async with asyncio.timeout(DEADLINE_S):
        while not injected(pod := await create(stage, owner)):  # noqa: ASYNC110 - the API server is asked
            await asyncio.sleep(0.05)
    return pod


async def label_namespace(stage: Stage) -> None:
    path = path_to("", "v1", "namespaces", name=stage.ml.name)
    await stage.ml.cluster.patch(path, {"metadata": {"labels": LABEL}})


def identity(stage: Stage, workload: Object) -> str:
    metadata = workload["metadata"]
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return run_id(cluster=CLUSTER_NAME, namespace=stage.ml.name, kind="Job", name=metadata["name"], created=created)


async def test_pods_of_a_labelled_workload_are_told_of_their_run(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        owner = await job(stage, "trainer", labels=LABEL)
        pod = await told(stage, owner)
        other = await create(stage, await job(stage, "other"))
    run = identity(stage, owner)
    assert pod["metadata"]["labels"][RUN_LABEL] == run[:32]
    assert pod["metadata"]["annotations"][RUN_ANNOTATION] == run
    env = {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}
    assert env["MLDIAG_RUN_ID"]["value"] == run
    assert env["MLDIAG_POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert not injected(other)
    assert INJECTION_ANNOTATION not in other["metadata"].get("annotations", {})


async def test_the_label_of_a_namespace_is_enough_for_a_workload(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        await label_namespace(stage)
        owner = await job(stage, "trainer")
        await told(stage, owner)
        assert not injected(await create(stage, await job(stage, "not-me", labels={OPT_IN_LABEL: "false"})))
        left_alone = await create(stage)
    assert not injected(left_alone)


async def test_without_the_process_pods_are_made_all_the_same(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        owner = await job(stage, "trainer", labels=LABEL)
        await told(stage, owner)
        process.process.kill()
        await process.ends()
        assert not injected(await create(stage, owner))


async def test_a_busy_process_keeps_no_pod_waiting(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        owner = await job(stage, "trainer", labels=LABEL)
        hogs = [asyncio.create_task(hog(process)) for _ in range(MAX_BODIES_BYTES // MAX_BODY_BYTES)]
        async with asyncio.timeout(DEADLINE_S):
            while ("refused", "Busy") not in await process.reviews():
                await create(stage, owner)
        for task in hogs:
            task.cancel()
        await asyncio.wait(hogs)
        await told(stage, owner)


async def hog(process: Process) -> None:
    """Announce the largest body there is, send nothing of it, and again."""
    trusting = ssl.create_default_context(cadata=process.ca.decode())
    head = f"POST /mutate/workload HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY_BYTES}\r\n\r\n".encode()
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port, ssl=trusting)
        try:
            writer.write(head)
            with suppress(ConnectionError):
                await reader.read()
        finally:
            writer.transport.abort()


async def test_a_slow_api_server_keeps_no_pod_waiting_and_is_named(
    api_server: ApiServer, stage: Stage, tmp_path: Path
) -> None:
    async with (
        wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig),
        webhook_process(kubeconfig, tmp_path) as process,
        registered(stage, process),
    ):
        await label_namespace(stage)
        await told(stage, await job(stage, "known"))
        wire.whole.clear()
        owner = await job(stage, "new")
        pod = await create(stage, owner)
        assert not injected(pod)
        assert pod["metadata"]["annotations"][INJECTION_ANNOTATION].startswith("OwnersUnknown: ")
        assert (await process.reviews())["failed", "OwnersUnknown"] >= 1
        assert await process.ask("/readyz") == (200, "serving")
        wire.mend()
        await told(stage, owner)


async def test_it_is_ready_when_it_knows_the_cluster(api_server: ApiServer, stage: Stage, tmp_path: Path) -> None:
    async with wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig):
        wire.cut()
        async with webhook_process(kubeconfig, tmp_path, MLDIAG_CLUSTER_NAME="") as process:
            await process.is_ready("asking for the cluster's name", 503)
            assert await process.ask("/healthz") == (200, "asking for the cluster's name")
            wire.mend()
            await process.is_ready()
            space = await stage.ml.cluster.get(path_to("", "v1", "namespaces", name="kube-system"))
            name = f"k8s-{space['metadata']['uid'][:8]}"
            assert f'mldiagnostics_webhook_info{{cluster="{name}"' in (await process.ask("/metrics"))[1]


async def test_it_is_not_ready_before_it_has_read_what_there_is(api_server: ApiServer, tmp_path: Path) -> None:
    async with wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig):
        wire.cut()
        async with webhook_process(kubeconfig, tmp_path) as process:
            await process.is_ready("reading namespaces and workloads", 503)
            wire.mend()
            await process.is_ready()


async def test_it_is_not_ready_without_a_certificate(api_server: ApiServer, tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    async with webhook_process(api_server.kubeconfig, tmp_path, MLDIAG_CERTIFICATE_FOLDER=str(folder)) as process:
        await process.is_ready("waiting for a certificate", 503)
        await asyncio.to_thread((tmp_path / "mounted").rename, folder)
        await process.is_ready()


async def test_under_load_one_replica_follows_another_and_no_pod_is_missed(
    api_server: ApiServer, stage: Stage, tmp_path: Path
) -> None:
    owner = await job(stage, "trainer", labels=LABEL)
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    async with (
        webhook_process(api_server.kubeconfig, folders[0]) as first,
        webhook_process(api_server.kubeconfig, folders[1]) as second,
        registered(stage, first) as name,
    ):
        await second.is_ready()
        enough = asyncio.Event()
        load = [asyncio.create_task(pods_until(enough, stage, owner)) for _ in range(4)]
        moved = configuration(name, second, stage.ml.name)["webhooks"]
        await stage.ml.cluster.patch(f"{CONFIGURATIONS}/{name}", {"webhooks": moved})
        async with asyncio.timeout(DEADLINE_S):
            while not await second.reviews():  # noqa: ASYNC110 - the process is asked
                await asyncio.sleep(0.01)
        first.process.send_signal(signal.SIGTERM)
        assert await first.ends() == 0
        enough.set()
        answers = [answer for answers in await asyncio.gather(*load) for answer in answers]
    assert len(answers) > 4
    assert all(answers)


async def pods_until(enough: asyncio.Event, stage: Stage, owner: Object) -> list[bool]:
    """Make pods one after the other; gives whether each was told of its run."""
    reference = builders.owned("trainer", "Job", "batch/v1", uid=owner["metadata"]["uid"])
    answers = []
    while not enough.is_set():
        answers.append(injected(await dry_run(stage.ml.cluster, stage.ml.name, ownerReferences=[reference])))
    return answers
