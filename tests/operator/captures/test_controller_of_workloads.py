from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import identity
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster import kinds
from support.cluster.namespaces import Stage
from support.cluster.operating import condition, verdict
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from support.cluster.namespaces import Object
    from support.cluster.operating import Namespace

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("operator")]

OPTED_IN = {OPT_IN_LABEL: "true"}
CLUSTER = "test-cluster"
KINDS = [
    kinds.jobset,
    kinds.job,
    kinds.leader_worker_set,
    kinds.ray_job,
    kinds.ray_cluster,
    kinds.stateful_set,
    kinds.deployment,
    kinds.pytorch_job,
    kinds.train_job,
]


@pytest.fixture
async def profiler(ml: Namespace) -> AsyncIterator[FakeProfiler]:
    async with FakeProfiler().serving(ml.ip) as server:
        yield server


@pytest.fixture
def stage(ml: Namespace, profiler: FakeProfiler) -> Stage:
    return Stage(ml, str(profiler.port))


async def captured(
    stage: Stage, workload: Object, *, expected: tuple[str, str] = ("Succeeded", "Succeeded"), **changes: Any
) -> Object:
    """Capture a workload and give the status."""
    reference = {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "name": workload["metadata"]["name"],
    }
    target = {"workloadRef": reference, **changes.pop("narrowing", {})}
    await stage.ml.capture(target=target, durationMilliseconds=10, startLeadMilliseconds=0, **changes)
    status = await stage.ml.finished()
    assert verdict(status) == expected, condition(status, "Complete")
    return status


def run_id(workload: Object) -> str:
    metadata = workload["metadata"]
    return identity.run_id(
        cluster=CLUSTER,
        namespace=metadata["namespace"],
        kind=workload["kind"],
        name=metadata["name"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
    )


def pods_by_rank(status: Object) -> dict[int, tuple[str, str]]:
    return {result["rank"]: (result["pod"], result["uid"]) for result in status["results"]}


def stored_in(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*.xplane.pb")}


@pytest.mark.parametrize("make", KINDS)
async def test_all_pods_of_a_workload_and_no_others_are_captured_by_rank_into_the_directory_of_its_run(
    stage: Stage, profiler: FakeProfiler, tmp_path: Path, make: Callable[..., Awaitable[Object]]
) -> None:
    workload = await make(stage, labels=OPTED_IN)
    await stage.impostors()
    status = await captured(stage, workload)
    owned = [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in stage.ranks]
    assert pods_by_rank(status) == dict(enumerate(owned))
    assert sorted(request.host_name for request in profiler.requests) == sorted(name for name, _ in owned)
    run = run_id(workload)
    session = f"{run}/plugins/profile/{status['sessionId']}"
    assert stored_in(tmp_path) == {f"{session}/{name}.xplane.pb" for name, _ in owned}
    assert status["captureResult"]["outputLocation"] == f"volume:///{run}"


async def test_all_jobs_of_a_jobset_are_captured(stage: Stage) -> None:
    workload = await kinds.jobset(stage, parts=(("workers", 22, 1),))
    await stage.impostors()
    status = await captured(stage, workload)
    assert [pod for pod, _ in pods_by_rank(status).values()] == [pod["metadata"]["name"] for pod in stage.ranks]
    assert [result["slice"] for result in status["results"]] == [*range(22)]


@pytest.mark.parametrize(
    ("narrowing", "ranks"),
    [
        ({"ranks": "1,3-9"}, [1, 3, 4]),
        ({"slices": "1"}, [2, 3]),
        ({"nodes": ["node-4", "node-0", "node-9"]}, [0, 4]),
        ({"replicatedJob": "driver"}, [4]),
        ({"limit": 2}, [0, 1]),
        ({"replicatedJob": "workers", "slices": "1", "limit": 1}, [2]),
    ],
    ids=str,
)
async def test_a_narrowed_target_keeps_its_ranks(
    stage: Stage, profiler: FakeProfiler, narrowing: dict[str, Any], ranks: list[int]
) -> None:
    status = await captured(stage, await kinds.jobset(stage), narrowing=narrowing)
    names = [pod["metadata"]["name"] for pod in stage.ranks]
    assert {rank: pod for rank, (pod, _) in pods_by_rank(status).items()} == {rank: names[rank] for rank in ranks}
    assert len(profiler.requests) == len(ranks)


@pytest.fixture
async def two_ports(ml: Namespace) -> AsyncIterator[list[FakeProfiler]]:
    """Profilers of two ranks; that of the first has the higher port."""
    async with FakeProfiler().serving(ml.ip) as one, FakeProfiler().serving(ml.ip) as other:
        yield sorted((one, other), key=lambda server: -server.port)


@pytest.mark.parametrize(
    "published",
    [
        lambda first, second: f"{first},{second}",
        lambda first, second: {"mldiag-prof-a": first, "http": 80, "mldiag-prof-b": second},
    ],
    ids=["annotation", "container ports"],
)
async def test_every_rank_of_a_pod_is_captured_on_its_own_port(
    ml: Namespace,
    two_ports: list[FakeProfiler],
    tmp_path: Path,
    published: Callable[[int, int], str | dict[str, int]],
) -> None:
    first, second = two_ports
    stage = Stage(ml, published(first.port, second.port))
    status = await captured(stage, await kinds.job(stage, pods=2))
    a, b = (pod["metadata"]["name"] for pod in stage.ranks)
    assert [(result["rank"], result["pod"], result["localRank"]) for result in status["results"]] == [
        (0, a, 0),
        (1, a, 1),
        (2, b, 0),
        (3, b, 1),
    ]
    assert {request.host_name for request in first.requests} == {f"{a}_0", f"{b}_0"}
    assert {request.host_name for request in second.requests} == {f"{a}_1", f"{b}_1"}
    traces = {f"{pod}_{rank}.xplane.pb" for pod in (a, b) for rank in (0, 1)}
    assert {path.rpartition("/")[2] for path in stored_in(tmp_path)} == traces


async def test_a_container_narrows_a_target_to_its_ports(ml: Namespace, two_ports: list[FakeProfiler]) -> None:
    train, sidecar = two_ports
    stage = Stage(ml, {"mldiag-prof": train.port}, sidecar={"mldiag-prof": sidecar.port})
    status = await captured(stage, await kinds.jobset(stage), narrowing={"container": "sidecar"})
    names = [pod["metadata"]["name"] for pod in stage.ranks]
    assert [result["pod"] for result in status["results"]] == names
    assert sorted(request.host_name for request in sidecar.requests) == sorted(names)
    assert train.requests == []


async def test_a_jobset_of_a_trainjob_belongs_to_the_run_of_the_trainjob(stage: Stage) -> None:
    train_job = await kinds.train_job(stage, labels=OPTED_IN)
    jobs = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "trainer"}}
    status = await captured(stage, jobs, narrowing={"replicatedJob": "node"})
    assert status["captureResult"]["outputLocation"] == f"volume:///{run_id(train_job)}"


async def test_a_job_of_a_cronjob_is_a_run_of_its_own(stage: Stage) -> None:
    template = {"spec": {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}}
    spec = {"schedule": "0 3 * * *", "jobTemplate": template}
    nightly = await stage.make("batch/v1", "CronJob", "nightly", labels=OPTED_IN, spec=spec)
    job = await kinds.job(stage, "nightly-29", labels=OPTED_IN, owner=nightly, pods=1)
    status = await captured(stage, job)
    assert status["captureResult"]["outputLocation"] == f"volume:///{run_id(job)}"


@pytest.mark.parametrize(
    ("make", "labels", "is_run"),
    [
        (kinds.jobset, {}, True),
        (kinds.jobset, {OPT_IN_LABEL: "false"}, False),
        (kinds.deployment, {}, False),
        (kinds.deployment, OPTED_IN, True),
    ],
)
async def test_a_label_on_the_namespace_makes_runs_of_batch_kinds(
    stage: Stage, make: Callable[..., Awaitable[Object]], labels: dict[str, str], is_run: bool
) -> None:
    namespace = path_to("", "v1", "namespaces", name=stage.ml.name)
    await stage.ml.cluster.patch(namespace, {"metadata": {"labels": OPTED_IN}})
    workload = await make(stage, labels=labels)
    status = await captured(stage, workload)
    place = run_id(workload) if is_run else f"{stage.ml.name}/{workload['metadata']['name']}"
    assert status["captureResult"]["outputLocation"] == f"volume:///{place}"


async def test_a_forged_pod_takes_no_rank(stage: Stage) -> None:
    jobset = await kinds.jobset(stage)
    [job] = await stage.ml.cluster.items(
        path_to("batch", "v1", "jobs", namespace=stage.ml.name),
        lambda job: job | {"apiVersion": "batch/v1", "kind": "Job"},
        fields="metadata.name=trainer-workers-0",
    )
    marks = job["spec"]["template"]["metadata"]["labels"] | {"batch.kubernetes.io/job-completion-index": "0"}
    await stage.pod("copy-of-rank-0", owner=job, labels=marks | {"jobset.sigs.k8s.io/job-global-index": "00"})
    status = await captured(stage, jobset)
    (skipped,) = (result for result in status["results"] if result["state"] == "Skipped")
    assert (skipped["pod"], skipped["reason"]) == ("copy-of-rank-0", "PositionNotConfirmed")
    assert "job-global-index" in skipped["message"]
    ranks = pods_by_rank({"results": [result for result in status["results"] if result["state"] == "Captured"]})
    assert sorted(ranks) == list(range(5))
