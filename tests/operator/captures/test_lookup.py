from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import identity
from mldiagnostics_api.captures.request import CaptureRequest, check
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.captures.lookup import Lookup
from mldiagnostics_operator.owners import FEW
from support.cluster.builders import connection, parsed
from support.cluster.operating import ANY_PORT, verdict
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.operating import Namespace, Object, Operating

pytestmark = pytest.mark.apiserver

POD_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def request(namespace: str, **trigger: object) -> CaptureRequest:
    checked = check(parsed(connection(namespace=namespace, **trigger)), ANY_PORT)
    assert isinstance(checked, CaptureRequest)
    return checked


async def job(ml: Namespace, name: str, **labels: str) -> Object:
    path = path_to("batch", "v1", "jobs", namespace=ml.name)
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"suspend": True, "template": POD_TEMPLATE}}
    return {**await ml.cluster.create(path, body), "apiVersion": "batch/v1", "kind": "Job"}


def files(volume: Path) -> set[str]:
    return {str(path.relative_to(volume)) for path in volume.rglob("*") if path.is_file()}


def of(owner: Object) -> dict[str, str]:
    return {"batch.kubernetes.io/controller-uid": owner["metadata"]["uid"]}


async def test_a_jobs_pods_are_found_with_their_owners(ml: Namespace) -> None:
    mine, other = await job(ml, "mine"), await job(ml, "other")
    for owner in (mine, other):
        for number in range(2):
            await ml.pod(f"{owner['metadata']['name']}-{number}", labels=of(owner), owner=owner)
    inventory = await Lookup(ml.cluster).find(request(ml.name, target={"workloadRef": {"kind": "Job", "name": "mine"}}))
    assert {pod.name for pod in inventory.pods} == {"mine-0", "mine-1"}
    assert inventory.workload is not None
    assert inventory.workload["metadata"]["uid"] == mine["metadata"]["uid"]
    key = ObjectReference("batch/v1", "Job", ml.name, "mine", mine["metadata"]["uid"])
    assert inventory.owners[key]["metadata"]["creationTimestamp"]  # type: ignore[index]
    assert inventory.owners[key]["spec"]["completions"] == 1  # type: ignore[index]
    assert "template" not in inventory.owners[key]["spec"]  # type: ignore[index]
    assert inventory.namespace_labels["kubernetes.io/metadata.name"] == ml.name


@pytest.mark.parametrize("count", [3, FEW + 1])
async def test_named_pods_are_found_one_by_one_or_by_a_list(ml: Namespace, count: int) -> None:
    owners = [await job(ml, f"job-{number}") for number in range(count)]
    for number, owner in enumerate(owners):
        await ml.pod(f"p-{number}", owner=owner)
    await ml.pod("unnamed")
    names = ",".join(f"p-{number}" for number in range(count))
    inventory = await Lookup(ml.cluster).find(request(ml.name, podName=names))
    assert {pod.name for pod in inventory.pods} == set(names.split(","))
    assert {owner["metadata"]["name"] for owner in inventory.owners.values() if owner} == {
        f"job-{number}" for number in range(count)
    }
    assert inventory.nearby == ()


async def test_existing_objects_are_listed_if_one_is_missing(ml: Namespace) -> None:
    await ml.pod("trainer-0")
    inventory = await Lookup(ml.cluster).find(request(ml.name, podName="trainer-1"))
    assert (list(inventory.pods), list(inventory.nearby)) == ([], ["trainer-0"])
    job_set = request(ml.name, target={"workloadRef": {"kind": "JobSet", "name": "none"}})
    inventory = await Lookup(ml.cluster).find(job_set)  # the kind is not even installed
    assert (inventory.workload, list(inventory.pods), list(inventory.nearby)) == (None, [], [])


async def test_an_owner_that_does_not_exist_is_none(ml: Namespace) -> None:
    await ml.pod("p", owner={"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "never", "uid": "u"}})
    inventory = await Lookup(ml.cluster).find(request(ml.name, podName="p"))
    assert list(inventory.owners.values()) == [None]


@pytest.mark.parametrize(
    ("api_version", "name"),
    [
        ("batch/v1", "../../../../api/v1/secrets"), ("batch/v1", "x%2f..%2f..%2fsecrets"), ("batch/v1", "x?watch=true"),
        ("batch/v1?watch=true&x=", "x"), ("batch/v1%2f..", "x"), ("batch/v1", ".."),
    ],
)  # fmt: skip
async def test_an_owner_reference_never_leads_to_another_path(
    ml: Namespace, monkeypatch: pytest.MonkeyPatch, api_version: str, name: str
) -> None:
    await ml.pod("p", owner={"apiVersion": api_version, "kind": "Job", "metadata": {"name": name, "uid": "u"}})
    paths: list[str] = []
    send = ml.cluster.request

    async def record(method: str, path: str, **options: Any) -> Object:
        paths.append(path)
        return await send(method, path, **options)

    monkeypatch.setattr(ml.cluster, "request", record)
    inventory = await Lookup(ml.cluster).find(request(ml.name, podName="p"))
    assert [pod.name for pod in inventory.pods] == ["p"]
    assert not any(inventory.owners.values())
    parts = (f"/api/v1/namespaces/{ml.name}", f"/api/v1/namespaces/{ml.name}/pods/p")
    assert set(paths) <= {*parts, f"/apis/batch/v1/namespaces/{ml.name}/jobs/x"}


async def test_traces_are_stored_by_run_or_by_workload(ml: Namespace, operator: Operating, tmp_path: Path) -> None:
    assert operator.captures
    opted_in, plain = await job(ml, "run", **{"managed-mldiagnostics-gke": "true"}), await job(ml, "plain")
    async with FakeProfiler().serving(ml.ip) as server, FakeProfiler().serving(ml.ip) as other:
        await ml.pod("run-0", server.port, labels=of(opted_in), owner=opted_in)
        await ml.pod("plain-0", other.port, labels=of(plain), owner=plain)
        await ml.capture(podName="run-0,plain-0", durationMilliseconds=10, startLeadMilliseconds=0)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    created = parsed({**connection(), "metadata": {**opted_in["metadata"]}}).metadata.creation_timestamp
    assert created
    run = identity.run_id(cluster="test-cluster", namespace=ml.name, kind="Job", name="run", created=created)
    session = f"plugins/profile/{status['sessionId']}"
    assert files(tmp_path) == {
        f"{run}/{session}/run-0.xplane.pb",
        f"{run}/{session}/capture.json",
        f"{ml.name}/plain/{session}/plain-0.xplane.pb",
        f"{ml.name}/plain/{session}/capture.json",
    }
