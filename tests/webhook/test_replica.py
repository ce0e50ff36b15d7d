from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.identity import run_id
from mldiagnostics_api.names import INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION, RUN_LABEL
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_webhook.limits import CONNECTIONS, MAX_BODY_BYTES, MEMORY_LIMIT_BYTES
from support.cluster import builders, kinds
from support.cluster.reviews import LABEL
from support.cluster.webhook_process import (
    CLUSTER_NAME,
    CONFIGURATIONS,
    DEADLINE_S,
    configuration,
    dry_run,
    injected,
    registered,
    webhook_process,
)
from support.servers.wire import wire_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from support.cluster.namespaces import Object, Stage
    from support.cluster.webhook_process import Process

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def process(api_server: ApiServer, tmp_path: Path) -> AsyncIterator[Process]:
    async with webhook_process(api_server.kubeconfig, tmp_path) as one:
        yield one


async def job(stage: Stage, name: str, *, labels: dict[str, str] | None = None) -> Object:
    """Create a Job without pods."""
    spec = {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}
    return await stage.make("batch/v1", "Job", name, labels=labels, spec=spec)


async def create(
    stage: Stage, owner: Object | None = None, name: str = "", spec: Object | None = None, **parts: Any
) -> Object:
    """Create a pod as a controller does and return it."""
    metadata: dict[str, Any] = {"name": name} if name else {"generateName": "pod-"}
    if owner:
        metadata["ownerReferences"] = [
            builders.owned(owner["metadata"]["name"], "Job", "batch/v1", uid=owner["metadata"]["uid"])
        ]
    body = {"metadata": metadata | parts, "spec": spec or {"containers": [{"name": "train", "image": "train:1"}]}}
    return await stage.ml.cluster.create(path_to("", "v1", "pods", namespace=stage.ml.name), body)


async def create_injected(stage: Stage, owner: Object) -> Object:
    """Create pods until one has a run, and return it: the API server reads new labels with a delay."""
    async with asyncio.timeout(DEADLINE_S):
        while not injected(pod := await create(stage, owner)):  # noqa: ASYNC110 - the API server is polled
            await asyncio.sleep(0.05)
    return pod


async def label_namespace(stage: Stage) -> None:
    path = path_to("", "v1", "namespaces", name=stage.ml.name)
    await stage.ml.cluster.patch(path, {"metadata": {"labels": LABEL}})


def identity(stage: Stage, workload: Object) -> str:
    metadata = workload["metadata"]
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return run_id(cluster=CLUSTER_NAME, namespace=stage.ml.name, kind="Job", name=metadata["name"], created=created)


async def test_pods_of_a_labelled_workload_get_a_run(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        owner = await job(stage, "trainer", labels=LABEL)
        pod = await create_injected(stage, owner)
        other = await create(stage, await job(stage, "other"))
    run = identity(stage, owner)
    assert pod["metadata"]["labels"][RUN_LABEL] == run[:32]
    assert pod["metadata"]["annotations"][RUN_ANNOTATION] == run
    env = {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}
    assert env["MLDIAG_RUN_ID"]["value"] == run
    assert env["MLDIAG_POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert not injected(other)
    assert INJECTION_ANNOTATION not in other["metadata"].get("annotations", {})


async def test_the_label_of_a_namespace_opts_workloads_in(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        await label_namespace(stage)
        owner = await job(stage, "trainer")
        await create_injected(stage, owner)
        assert not injected(await create(stage, await job(stage, "opted-out", labels={OPT_IN_LABEL: "false"})))
        bare_pod = await create(stage)
    assert not injected(bare_pod)


async def test_pods_are_created_while_the_webhook_is_down(process: Process, stage: Stage) -> None:
    async with registered(stage, process):
        owner = await job(stage, "trainer", labels=LABEL)
        await create_injected(stage, owner)
        process.process.kill()
        await process.ends()
        assert not injected(await create(stage, owner))


async def test_hostile_clients_do_not_keep_pods_without_a_run(process: Process, stage: Stage) -> None:
    async with registered(stage, process), AsyncExitStack() as stack:
        owner = await job(stage, "trainer", labels=LABEL)
        await create_injected(stage, owner)
        trusting = ssl.create_default_context(cadata=process.ca.decode())

        def attack(*parts: bytes) -> None:
            """Open a connection, send the parts and keep it open."""
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", process.port), timeout=DEADLINE_S))
            with suppress(OSError):  # the server closes it
                connection = stack.enter_context(trusting.wrap_socket(plain, server_hostname="127.0.0.1"))
                for part in parts:
                    connection.sendall(part)

        def head(size: int) -> bytes:
            return f"POST /mutate/workload HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()

        part = b'{"":0},'
        junk = b"[" + part * (MAX_BODY_BYTES // len(part) - 1) + b"0]"
        while ("unreadable", "TooComplex") not in await process.reviews():  # a slow machine may not send it in time
            await asyncio.gather(*(asyncio.to_thread(attack, head(len(junk)), junk) for _ in range(2)))
        hostile = [(head(len(junk)), junk)] * 8
        slow = [(head(MAX_BODY_BYTES), b"[" * (MAX_BODY_BYTES - 1))] * 8
        silent = [(head(MAX_BODY_BYTES),)] * (CONNECTIONS // 2)
        idle = [()] * CONNECTIONS
        attacks = asyncio.gather(*(asyncio.to_thread(attack, *each) for each in (*hostile, *slow, *silent, *idle)))
        pods = [await create(stage, owner)]
        while not attacks.done():
            pods.append(await create(stage, owner))
        await attacks
        assert sum(not injected(pod) for pod in pods) <= 1 + len(pods) // 100, await process.reviews()
        assert process.peak_bytes() <= MEMORY_LIMIT_BYTES * 0.8


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_pod_near_the_limit_of_etcd_is_created_without_a_run(process: Process, stage: Stage) -> None:
    owner = await job(stage, "trainer", labels=LABEL)

    async def create_large(size: int) -> Object | None:
        """Create a pod with an argument of a size; return None if it is rejected."""
        with suppress(ClusterError):
            return await create(stage, owner, spec={"containers": [{"name": "a", "image": "b", "args": ["x" * size]}]})
        return None

    low, high = 2**20, 2**21
    while high - low > 128:
        middle = (low + high) // 2
        low, high = (middle, high) if await create_large(middle) else (low, middle)
    async with registered(stage, process):
        await create_injected(stage, owner)
        pod = await create_large(low)
        assert pod, "etcd rejects the additions"
        assert not injected(pod)
        assert INJECTION_ANNOTATION not in pod["metadata"].get("annotations", {})
        assert (await process.reviews())["skipped", "PodTooLarge"] == 1


async def test_a_slow_api_server_does_not_delay_pods_and_is_named(
    api_server: ApiServer, stage: Stage, tmp_path: Path
) -> None:
    async with (
        wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig),
        webhook_process(kubeconfig, tmp_path) as process,
        registered(stage, process),
    ):
        await label_namespace(stage)
        await create_injected(stage, await job(stage, "known"))
        wire.whole.clear()
        owner = await job(stage, "new")
        pod = await create(stage, owner)
        assert not injected(pod)
        assert pod["metadata"]["annotations"][INJECTION_ANNOTATION].startswith("OwnersUnknown: ")
        assert (await process.reviews())["failed", "OwnersUnknown"] >= 1
        assert await process.get("/readyz") == (200, "serving")
        wire.mend()
        await create_injected(stage, owner)


async def test_a_replica_is_ready_when_the_cluster_name_is_known(
    api_server: ApiServer, stage: Stage, tmp_path: Path
) -> None:
    async with wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig):
        wire.cut()
        async with webhook_process(kubeconfig, tmp_path, MLDIAG_CLUSTER_NAME="") as process:
            await process.is_ready("resolving the cluster's name", 503)
            assert await process.get("/healthz") == (200, "resolving the cluster's name")
            wire.mend()
            await process.is_ready()
            space = await stage.ml.cluster.get(path_to("", "v1", "namespaces", name="kube-system"))
            name = f"k8s-{space['metadata']['uid'][:8]}"
            assert f'mldiagnostics_webhook_info{{cluster="{name}"' in (await process.get("/metrics"))[1]


async def test_a_replica_is_not_ready_before_the_cache_is_synced(api_server: ApiServer, tmp_path: Path) -> None:
    async with wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig):
        wire.cut()
        async with webhook_process(kubeconfig, tmp_path) as process:
            await process.is_ready("reading namespaces and workloads", 503)
            wire.mend()
            await process.is_ready()


async def test_a_replica_is_not_ready_without_a_certificate(api_server: ApiServer, tmp_path: Path) -> None:
    folder = tmp_path / "absent"
    async with webhook_process(api_server.kubeconfig, tmp_path, MLDIAG_CERTIFICATE_FOLDER=str(folder)) as process:
        await process.is_ready("waiting for a certificate", 503)
        await asyncio.to_thread((tmp_path / "mounted").rename, folder)
        await process.is_ready()


async def test_under_load_replacing_a_replica_misses_no_pod(
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
            while not await second.reviews():  # noqa: ASYNC110 - the process is polled
                await asyncio.sleep(0.01)
        first.process.send_signal(signal.SIGTERM)
        assert await first.ends() == 0
        enough.set()
        answers = [answer for answers in await asyncio.gather(*load) for answer in answers]
    assert len(answers) > 4
    assert all(answers)


async def pods_until(enough: asyncio.Event, stage: Stage, owner: Object) -> list[bool]:
    """Create pods one after the other; return whether each got a run."""
    reference = builders.owned("trainer", "Job", "batch/v1", uid=owner["metadata"]["uid"])
    answers = []
    while not enough.is_set():
        answers.append(injected(await dry_run(stage.ml.cluster, stage.ml.name, ownerReferences=[reference])))
    return answers
