from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cluster.envtest import apiserver
from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_webhook.cache import MetadataCache, OwnerContext
from mldiagnostics_webhook.telemetry import WebhookMetrics
from support.cluster import builders, kinds
from support.cluster.definitions import DEFINITIONS
from support.cluster.metadata_server import metadata_server
from support.cluster.namespaces import Stage
from support.cluster.operating import Namespace
from support.cluster.reviews import job, jobset, namespace
from support.servers.wire import wire_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer

Object = dict[str, Any]

DEADLINE_S = 60
JOBSETS, JOBS, NAMESPACES = "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/batch/v1/jobs", "/api/v1/namespaces"
PLENTY_S = 60.0
FAST = Backoff(shortest_s=0.05, longest_s=0.5, absent_s=0.2, forbidden_s=0.2, doubt_s=0.5)


class RunningCache:
    """A running cache and its metrics."""

    def __init__(self, cache: MetadataCache, telemetry: WebhookMetrics) -> None:
        self.cache, self._telemetry = cache, telemetry

    def value(self, name: str, **labels: str) -> float:
        return self._telemetry.registry.get_sample_value(f"mldiagnostics_webhook_{name}", labels) or 0.0

    def lookups(self) -> dict[str, float]:
        outcomes = [{"found": each} for each in ("cache", "server", "nowhere", "forbidden", "failed")]
        return {each["found"]: count for each in outcomes if (count := self.value("lookups_total", **each))}

    def state(self, kind: str) -> str:
        states = ("unknown", "followed", "behind", "absent", "forbidden")
        (state,) = [state for state in states if self.value("watch", kind=kind, state=state)]
        return state

    async def until(self, condition: Callable[[], bool], description: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():  # noqa: ASYNC110 - the cache is polled
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{description}: not within {DEADLINE_S} s") from None

    async def owners(self, pod_of: Object) -> list[str] | str:
        """Return the names of the owners of a pod of this object, or the reason why they are unknown."""
        context = await self.context(pod_of)
        if isinstance(context, OwnersUnknown):
            return context.message
        if isinstance(context.owners, OwnersUnknown):
            return context.owners.message
        return [owner["metadata"]["name"] for owner in context.owners]

    async def context(self, pod_of: Object) -> OwnerContext | OwnersUnknown:
        space, name = pod_of["metadata"]["namespace"], pod_of["metadata"]["name"]
        reference = ObjectReference(pod_of["apiVersion"], pod_of["kind"], space, name, pod_of["metadata"]["uid"])
        return await self.cache.owner_context(space, reference)

    def has(self, of: Object) -> bool:
        """Return whether the cache has this version of an object."""
        metadata = of["metadata"]
        informer = next(kind for kind in self.cache._kinds.values() if kind.name == of["kind"])
        item = informer.store.get(metadata["namespace"], metadata["name"])
        return item is not None and all(item["metadata"].get(key) == metadata.get(key) for key in ("uid", "labels"))


@asynccontextmanager
async def running(cluster: ApiClient, **limits: Any) -> AsyncIterator[RunningCache]:
    telemetry = WebhookMetrics()
    cache = MetadataCache(cluster, telemetry, **{"backoff": FAST, "lookup_s": PLENTY_S, **limits})
    async with cache.running():
        cached = RunningCache(cache, telemetry)
        await cached.until(lambda: cache.synced, "every kind is settled")
        yield cached


class TestWithinBounds:
    async def test_watched_objects_are_not_requested(self) -> None:
        top = jobset()
        async with (
            metadata_server({NAMESPACES: [namespace(a="b")], JOBSETS: [top], JOBS: [job(top)]}) as (server, cluster),
            running(cluster) as cached,
        ):
            context = await cached.context(job(top))
            assert isinstance(context, OwnerContext)
            assert context.namespace["metadata"]["labels"] == {"a": "b"}
            assert await cached.owners(job(top)) == ["trainer-workers-0", "trainer"]
            assert server.requested == []
            assert cached.lookups() == {"cache": 6}

    async def test_owners_newer_than_the_watch_are_requested(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden = {"ml", "trainer", "trainer-workers-0"}
            async with running(cluster) as cached:
                assert await cached.owners(job(top)) == ["trainer-workers-0", "trainer"]
                assert cached.lookups() == {"server": 3}

    async def test_concurrent_lookups_share_one_request(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden, server.slow_s = {"trainer"}, 0.1
            async with running(cluster) as cached:
                answers = await asyncio.gather(*(cached.owners(job(top)) for _ in range(200)))
                assert answers == [["trainer-workers-0", "trainer"]] * 200
                assert len(server.requested) == 1

    async def test_a_cached_object_with_another_uid_is_requested(self) -> None:
        old, new = jobset(uid="old"), jobset(uid="new")
        objects = {NAMESPACES: [namespace()], JOBSETS: [old], JOBS: [job(new)]}
        async with metadata_server(objects) as (server, cluster), running(cluster) as cached:
            server.kinds[JOBSETS] = [new]
            assert await cached.owners(job(new)) == ["trainer-workers-0", "trainer"]
            assert len(server.requested) == 1
            assert await cached.owners(jobset(uid="forged")) == []

    async def test_one_deadline_covers_the_whole_walk(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden, server.slow_s = {"ml", "trainer", "trainer-workers-0"}, 0.4
            async with running(cluster, lookup_s=1.0) as cached:
                assert await cached.owners(job(top)) == "the API server did not answer in time"

    async def test_invalid_names_are_not_requested(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()]}) as (server, cluster), running(cluster) as cached:
            for name in ("..", "a/b", "../../secrets", "a?b", "", "A"):
                assert await cached.owners(jobset(name)) == []
            assert isinstance(await cached.context(jobset(namespace="../pods")), OwnersUnknown)
            assert server.requested == []

    async def test_objects_beyond_the_budget_are_requested_and_counted(self) -> None:
        tops = [jobset(f"trainer-{n}", labels={"a": "x" * 60}) for n in range(20)]
        async with (
            metadata_server({NAMESPACES: [namespace()], JOBSETS: tops}) as (server, cluster),
            running(cluster, budget_bytes=5000) as cached,
        ):
            for top in tops:
                assert await cached.owners(top) == [top["metadata"]["name"]]
            assert 0 < cached.value("cached_objects", kind="JobSet") < 20
            left_out = cached.value("cache_left_out", kind="JobSet")
            assert left_out == 20 - cached.value("cached_objects", kind="JobSet") == len(server.requested)

    async def test_a_forbidden_kind_is_not_requested_again(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()]}) as (server, cluster):
            server.status[JOBSETS] = 403
            async with running(cluster) as cached:
                assert cached.state("JobSet") == "forbidden"
                assert "may not read objects of kind JobSet" in await cached.owners(jobset())
                assert cached.lookups() == {"cache": 1, "forbidden": 1}
                del server.status[JOBSETS]
                server.kinds[JOBSETS] = [jobset()]
                await cached.until(lambda: cached.state("JobSet") == "followed", "it is allowed now")
                assert await cached.owners(jobset()) == ["trainer"]

    @pytest.mark.parametrize("status", [403, 404])
    async def test_rejections_of_a_starting_api_server_leave_the_objects(self, status: int) -> None:
        """It answers so until it has read its rules and definitions."""
        backoff = replace(FAST, doubt_s=PLENTY_S)
        objects = {NAMESPACES: [namespace()], JOBSETS: [jobset()]}
        async with metadata_server(objects) as (server, cluster), running(cluster, backoff=backoff) as cached:
            server.status[JOBSETS] = status
            server.restart_watches()
            await cached.until(lambda: cached.state("JobSet") == "behind", "the watch is rejected")
            assert await cached.owners(jobset()) == ["trainer"]
            assert server.requested == []

    async def test_lasting_rejections_drop_the_objects(self) -> None:
        objects = {NAMESPACES: [namespace()], JOBSETS: [jobset()]}
        async with metadata_server(objects) as (server, cluster), running(cluster) as cached:
            server.status[JOBSETS] = 403
            server.restart_watches()
            await cached.until(lambda: cached.state("JobSet") == "forbidden", "the rejection lasts")
            assert "may not read objects of kind JobSet" in await cached.owners(jobset())

    async def test_a_kind_that_cannot_be_listed_does_not_block_the_others(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()], JOBS: []}) as (server, cluster):
            server.status[JOBSETS] = 500
            async with running(cluster) as cached:
                assert cached.state("JobSet") == "behind"
                assert "500" in await cached.owners(jobset())
                server.kinds[JOBSETS] = [jobset()]
                del server.status[JOBSETS]
                await cached.until(lambda: cached.state("JobSet") == "followed", "it can be listed now")
                assert await cached.owners(jobset()) == ["trainer"]

    async def test_a_server_error_leaves_the_owners_unknown(self) -> None:
        objects: dict[str, list[Object]] = {NAMESPACES: [namespace()], JOBSETS: []}
        async with metadata_server(objects) as (server, cluster), running(cluster) as cached:
            server.status[JOBSETS] = 503
            assert "503" in await cached.owners(jobset())
            assert cached.lookups() == {"cache": 1, "failed": 1}


@pytest.fixture(scope="module")
def own_server() -> Iterator[ApiServer]:
    """An API server that the test may stop and compact."""
    with apiserver() as server:
        yield server


@pytest.fixture
async def own_stage(own_server: ApiServer) -> AsyncIterator[Stage]:
    client = await ApiClient.connect({"KUBECONFIG": str(own_server.kubeconfig)})
    yield Stage(Namespace(client, "default", ip=""), published="")
    await client.aclose()


async def without(admin: ApiClient, definition: str) -> None:
    """Delete a CustomResourceDefinition and wait until it is gone."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                item = await admin.get(f"{DEFINITIONS}/{definition}")
                await admin.delete(f"{DEFINITIONS}/{definition}", uid=item["metadata"]["uid"])
            except NotFound:
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[RunningCache]:
    cluster = await ApiClient.connect({"KUBECONFIG": str(kubeconfig)})
    try:
        async with running(cluster) as cached:
            yield cached
    finally:
        await cluster.aclose()


async def labelled(stage: Stage, name: str, **labels: str) -> Object:
    """Create a Job without pods and return it as the API server does."""
    spec = {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}
    return await stage.make("batch/v1", "Job", name, labels=labels, spec=spec)


async def remove(stage: Stage, of: Object) -> None:
    path = path_to("batch", "v1", "jobs", namespace=of["metadata"]["namespace"], name=of["metadata"]["name"])
    await stage.ml.cluster.request("DELETE", path, body={"propagationPolicy": "Background"})


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_creations_changes_and_deletions_are_seen(self, cluster: ApiClient, stage: Stage) -> None:
        async with running(cluster) as cached:
            made = await labelled(stage, "job-1", a="1")
            await cached.until(lambda: cached.has(made), "the new Job is known")
            before = await cached.context(made)
            assert before is await cached.context(made)
            path = path_to("batch", "v1", "jobs", namespace=stage.ml.name, name="job-1")
            changed = await stage.ml.cluster.patch(path, {"metadata": {"labels": {"a": "2"}}})
            await cached.until(lambda: cached.has(changed), "its new label is known")
            after = await cached.context(made)
            assert isinstance(after, OwnerContext)
            assert not isinstance(after.owners, OwnersUnknown)
            assert after.owners[0]["metadata"]["labels"] == {"a": "2"}
            await remove(stage, made)
            await cached.until(lambda: not cached.has(changed), "it is known to be gone")
            assert await cached.owners(made) == []
            assert cached.state("Job") == "followed"

    async def test_the_walk_ends_at_the_topmost_owner(self, cluster: ApiClient, stage: Stage) -> None:
        top = await kinds.jobset(stage, parts=(("workers", 1, 1),))
        async with running(cluster) as cached:
            pod = stage.ranks[0]
            reference = ObjectReference.to_controller(pod["metadata"], stage.ml.name)
            context = await cached.cache.owner_context(stage.ml.name, reference)
            assert isinstance(context, OwnerContext)
            assert not isinstance(context.owners, OwnersUnknown)
            assert [owner["kind"] for owner in context.owners] == ["Job", "JobSet"]
            assert context.owners[-1]["metadata"]["uid"] == top["metadata"]["uid"]
            assert context.namespace["metadata"]["name"] == stage.ml.name

    async def test_the_workers_of_a_leader_are_led_to_their_set_without_reading_pods(
        self, cluster: ApiClient, stage: Stage
    ) -> None:
        top = await kinds.leader_worker_set(stage)
        async with running(cluster) as cached:
            for pod in stage.ranks[:3]:
                reference = ObjectReference.to_controller(pod["metadata"], stage.ml.name)
                context = await cached.cache.owner_context(stage.ml.name, reference)
                assert isinstance(context, OwnerContext)
                assert not isinstance(context.owners, OwnersUnknown)
                assert context.owners[-1]["metadata"]["uid"] == top["metadata"]["uid"]

    async def test_a_kind_may_appear_later_and_disappear(
        self, cluster: ApiClient, stage: Stage, admin: ApiClient
    ) -> None:
        name = "trainjobs.trainer.kubeflow.org"
        await without(admin, name)  # another test may have created it
        async with running(cluster) as cached:
            assert cached.state("TrainJob") == "absent"
            made = await stage.make("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", labels={"a": "1"})
            assert await cached.owners(made) == ["t"]
            await cached.until(lambda: cached.has(made), "the kind is followed")
            await without(admin, name)
            await cached.until(lambda: cached.state("TrainJob") == "absent", "the kind is gone")
            assert await cached.owners(made) == []

    async def test_while_the_api_server_is_down_the_cache_answers(
        self, own_server: ApiServer, own_stage: Stage
    ) -> None:
        made = await labelled(own_stage, "stays")
        async with connected(own_server.kubeconfig) as cached:
            await asyncio.to_thread(own_server.stop_apiserver)
            try:
                await cached.until(lambda: cached.state("Job") == "behind", "the outage is noticed")
                assert await cached.owners(made) == ["stays"]
                unknown = builders.thing("other", kind="Job", api_version="batch/v1", namespace="default")
                assert "did not" in await cached.owners(unknown)
            finally:
                await asyncio.to_thread(own_server.start_apiserver)
            new = await labelled(own_stage, "new")
            await cached.until(lambda: cached.has(new), "the watch works again")
            await cached.until(lambda: cached.state("Job") == "followed", "the state is followed")

    async def test_an_expired_watch_lists_again(self, own_server: ApiServer, own_stage: Stage, tmp_path: Path) -> None:
        stays, goes = await labelled(own_stage, "stays-too"), await labelled(own_stage, "goes")
        async with wire_to(own_server.kubeconfig, tmp_path) as (wire, kubeconfig), connected(kubeconfig) as cached:
            assert cached.has(goes)
            wire.cut()
            await remove(own_stage, goes)
            await asyncio.to_thread(own_server.forget_history)
            wire.mend()
            await cached.until(lambda: not cached.has(goes), "the deleted object is forgotten")
            assert cached.has(stays)
