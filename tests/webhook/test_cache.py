from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from cluster.envtest import apiserver
from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.owners import ObjectReference
from mldiagnostics_kube.apiserver import NotFound, path_to
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.informer import Backoff
from mldiagnostics_webhook.cache import MetadataCache, OwnerContext
from mldiagnostics_webhook.telemetry import WebhookMetrics
from support import builders, kinds
from support.definitions import DEFINITIONS
from support.metadata_server import metadata_server
from support.operating import Namespace
from support.reviews import job, jobset, namespace
from support.stage import Stage
from support.wire import wire_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer

Object = dict[str, Any]

DEADLINE_S = 60
JOBSETS, JOBS, NAMESPACES = "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/batch/v1/jobs", "/api/v1/namespaces"
PLENTY_S = 60.0
HASTY = Backoff(shortest_s=0.05, longest_s=0.5, absent_s=0.2, forbidden_s=0.2)


class Kept:
    """A cache that follows something, and what it counted."""

    def __init__(self, cache: MetadataCache, telemetry: WebhookMetrics) -> None:
        self.cache, self._telemetry = cache, telemetry

    def value(self, name: str, **labels: str) -> float:
        return self._telemetry.registry.get_sample_value(f"mldiagnostics_webhook_{name}", labels) or 0.0

    def lookups(self) -> dict[str, float]:
        found = ("cache", "server", "nowhere", "forbidden", "failed")
        return {place: count for place in found if (count := self.value("lookups_total", found=place))}

    def state(self, kind: str) -> str:
        states = ("unknown", "followed", "behind", "absent", "forbidden")
        (state,) = [state for state in states if self.value("watch", kind=kind, state=state)]
        return state

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():  # noqa: ASYNC110 - the cache is asked
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{what}: not within {DEADLINE_S} s") from None

    async def owners(self, pod_of: Object) -> list[str] | str:
        """Names of the owners of a pod that this object controls, or why they are not known."""
        around = await self.around(pod_of)
        if isinstance(around, OwnersUnknown):
            return around.message
        if isinstance(around.owners, OwnersUnknown):
            return around.owners.message
        return [owner["metadata"]["name"] for owner in around.owners]

    async def around(self, pod_of: Object) -> OwnerContext | OwnersUnknown:
        space, name = pod_of["metadata"]["namespace"], pod_of["metadata"]["name"]
        reference = ObjectReference(pod_of["apiVersion"], pod_of["kind"], space, name, pod_of["metadata"]["uid"])
        return await self.cache.surroundings(space, reference)

    def has(self, of: Object) -> bool:
        """Whether the cache has this version of an object."""
        return self._kept(of) is not None

    def _kept(self, of: Object) -> Object | None:
        metadata = of["metadata"]
        following = next(kind for kind in self.cache._kinds.values() if kind.name == of["kind"])
        found: Any = following.store.get(metadata["namespace"], metadata["name"])
        same = found and all(found["metadata"].get(key) == metadata.get(key) for key in ("uid", "labels"))
        return found if same else None


@asynccontextmanager
async def following(cluster: ApiClient, **limits: Any) -> AsyncIterator[Kept]:
    telemetry = WebhookMetrics()
    cache = MetadataCache(cluster, telemetry, **{"patience": HASTY, "lookup_s": PLENTY_S, **limits})
    async with cache.following():
        kept = Kept(cache, telemetry)
        await kept.until(lambda: cache.synced, "every kind is settled")
        yield kept


class TestWithinBounds:
    async def test_what_is_followed_is_not_asked_for(self) -> None:
        top = jobset()
        async with (
            metadata_server({NAMESPACES: [namespace(a="b")], JOBSETS: [top], JOBS: [job(top)]}) as (server, cluster),
            following(cluster) as kept,
        ):
            around = await kept.around(job(top))
            assert isinstance(around, OwnerContext)
            assert around.namespace["metadata"]["labels"] == {"a": "b"}
            assert await kept.owners(job(top)) == ["trainer-workers-0", "trainer"]
            assert server.asked == []
            assert kept.lookups() == {"cache": 6}

    async def test_a_pod_is_faster_than_the_watch(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden = {"ml", "trainer", "trainer-workers-0"}
            async with following(cluster) as kept:
                assert await kept.owners(job(top)) == ["trainer-workers-0", "trainer"]
                assert kept.lookups() == {"server": 3}

    async def test_many_pods_ask_once(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden, server.slow_s = {"trainer"}, 0.1
            async with following(cluster) as kept:
                answers = await asyncio.gather(*(kept.owners(job(top)) for _ in range(200)))
                assert answers == [["trainer-workers-0", "trainer"]] * 200
                assert len(server.asked) == 1

    async def test_the_uid_decides_whether_the_cache_is_believed(self) -> None:
        old, new = jobset(uid="old"), jobset(uid="new")
        objects = {NAMESPACES: [namespace()], JOBSETS: [old], JOBS: [job(new)]}
        async with metadata_server(objects) as (server, cluster), following(cluster) as kept:
            server.kinds[JOBSETS] = [new]
            assert await kept.owners(job(new)) == ["trainer-workers-0", "trainer"]
            assert len(server.asked) == 1
            assert await kept.owners(jobset(uid="forged")) == []

    async def test_the_deadline_is_one_for_the_whole_walk(self) -> None:
        top = jobset()
        objects = {NAMESPACES: [namespace()], JOBSETS: [top], JOBS: [job(top)]}
        async with metadata_server(objects) as (server, cluster):
            server.hidden, server.slow_s = {"ml", "trainer", "trainer-workers-0"}, 0.4
            async with following(cluster, lookup_s=1.0) as kept:
                assert await kept.owners(job(top)) == "the API server did not tell in time"

    async def test_names_that_are_none_lead_nowhere(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()]}) as (server, cluster), following(cluster) as kept:
            for name in ("..", "a/b", "../../secrets", "a?b", "", "A"):
                assert await kept.owners(jobset(name)) == []
            assert isinstance(await kept.around(jobset(namespace="../pods")), OwnersUnknown)
            assert server.asked == []

    async def test_what_finds_no_room_is_asked_for_and_counted(self) -> None:
        tops = [jobset(f"trainer-{n}", labels={"a": "x" * 60}) for n in range(20)]
        async with (
            metadata_server({NAMESPACES: [namespace()], JOBSETS: tops}) as (server, cluster),
            following(cluster, room_bytes=5000) as kept,
        ):
            for top in tops:
                assert await kept.owners(top) == [top["metadata"]["name"]]
            assert 0 < kept.value("cached_objects", kind="JobSet") < 20
            left_out = kept.value("cache_left_out", kind="JobSet")
            assert left_out == 20 - kept.value("cached_objects", kind="JobSet") == len(server.asked)

    async def test_a_forbidden_kind_is_not_asked_for_again_and_again(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()]}) as (server, cluster):
            server.status[JOBSETS] = 403
            async with following(cluster) as kept:
                assert kept.state("JobSet") == "forbidden"
                assert "may not read objects of kind JobSet" in await kept.owners(jobset())
                assert kept.lookups() == {"cache": 1, "forbidden": 1}
                del server.status[JOBSETS]
                server.kinds[JOBSETS] = [jobset()]
                await kept.until(lambda: kept.state("JobSet") == "followed", "it is allowed now")
                assert await kept.owners(jobset()) == ["trainer"]

    async def test_a_kind_that_cannot_be_listed_does_not_hold_up_the_others(self) -> None:
        async with metadata_server({NAMESPACES: [namespace()], JOBS: []}) as (server, cluster):
            server.status[JOBSETS] = 500
            async with following(cluster) as kept:
                assert kept.state("JobSet") == "behind"
                assert "500" in await kept.owners(jobset())
                server.kinds[JOBSETS] = [jobset()]
                del server.status[JOBSETS]
                await kept.until(lambda: kept.state("JobSet") == "followed", "it can be listed now")
                assert await kept.owners(jobset()) == ["trainer"]

    async def test_an_api_server_that_breaks_is_no_answer(self) -> None:
        objects: dict[str, list[Object]] = {NAMESPACES: [namespace()], JOBSETS: []}
        async with metadata_server(objects) as (server, cluster), following(cluster) as kept:
            server.status[JOBSETS] = 503
            assert "503" in await kept.owners(jobset())
            assert kept.lookups() == {"cache": 1, "failed": 1}


@pytest.fixture(scope="module")
def own_server() -> Iterator[ApiServer]:
    """A server of our own, which stops and forgets."""
    with apiserver() as server:
        yield server


@pytest.fixture
async def own_stage(own_server: ApiServer) -> AsyncIterator[Stage]:
    client = await ApiClient.connect({"KUBECONFIG": str(own_server.kubeconfig)})
    yield Stage(Namespace(client, "default", ip=""), published="")
    await client.aclose()


async def without(admin: ApiClient, definition: str) -> None:
    """Delete the definition of a kind, if it is there, and wait until it is gone."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                found = await admin.get(f"{DEFINITIONS}/{definition}")
                await admin.delete(f"{DEFINITIONS}/{definition}", uid=found["metadata"]["uid"])
            except NotFound:
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def follower(kubeconfig: Path) -> AsyncIterator[Kept]:
    cluster = await ApiClient.connect({"KUBECONFIG": str(kubeconfig)})
    try:
        async with following(cluster) as kept:
            yield kept
    finally:
        await cluster.aclose()


async def labelled(stage: Stage, name: str, **labels: str) -> Object:
    """A Job that controls nothing yet, as the API server gives it back."""
    spec = {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}
    return await stage.make("batch/v1", "Job", name, labels=labels, spec=spec)


async def remove(stage: Stage, of: Object) -> None:
    path = path_to("batch", "v1", "jobs", namespace=of["metadata"]["namespace"], name=of["metadata"]["name"])
    await stage.ml.cluster.request("DELETE", path, body={"propagationPolicy": "Background"})


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_it_follows_what_comes_changes_and_goes(self, cluster: ApiClient, stage: Stage) -> None:
        async with following(cluster) as kept:
            made = await labelled(stage, "job-1", a="1")
            await kept.until(lambda: kept.has(made), "the new Job is known")
            before = await kept.around(made)
            assert before is await kept.around(made)
            path = path_to("batch", "v1", "jobs", namespace=stage.ml.name, name="job-1")
            changed = await stage.ml.cluster.patch(path, {"metadata": {"labels": {"a": "2"}}})
            await kept.until(lambda: kept.has(changed), "its new label is known")
            after = await kept.around(made)
            assert isinstance(after, OwnerContext)
            assert not isinstance(after.owners, OwnersUnknown)
            assert after.owners[0]["metadata"]["labels"] == {"a": "2"}
            await remove(stage, made)
            await kept.until(lambda: not kept.has(changed), "it is known to be gone")
            assert await kept.owners(made) == []
            assert kept.state("Job") == "followed"

    async def test_the_walk_goes_up_to_the_top(self, cluster: ApiClient, stage: Stage) -> None:
        top = await kinds.jobset(stage, parts=(("workers", 1, 1),))
        async with following(cluster) as kept:
            pod = stage.ranks[0]
            reference = ObjectReference.to_controller(pod["metadata"], stage.ml.name)
            around = await kept.cache.surroundings(stage.ml.name, reference)
            assert isinstance(around, OwnerContext)
            assert not isinstance(around.owners, OwnersUnknown)
            assert [owner["kind"] for owner in around.owners] == ["Job", "JobSet"]
            assert around.owners[-1]["metadata"]["uid"] == top["metadata"]["uid"]
            assert around.namespace["metadata"]["name"] == stage.ml.name

    async def test_the_workers_of_a_leader_are_led_to_their_set_without_reading_pods(
        self, cluster: ApiClient, stage: Stage
    ) -> None:
        top = await kinds.leader_worker_set(stage)
        async with following(cluster) as kept:
            for pod in stage.ranks[:3]:
                reference = ObjectReference.to_controller(pod["metadata"], stage.ml.name)
                around = await kept.cache.surroundings(stage.ml.name, reference)
                assert isinstance(around, OwnerContext)
                assert not isinstance(around.owners, OwnersUnknown)
                assert around.owners[-1]["metadata"]["uid"] == top["metadata"]["uid"]

    async def test_a_kind_may_come_later_and_go(self, cluster: ApiClient, stage: Stage, admin: ApiClient) -> None:
        name = "trainjobs.trainer.kubeflow.org"
        await without(admin, name)  # another test's may be there
        async with following(cluster) as kept:
            assert kept.state("TrainJob") == "absent"
            made = await stage.make("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", labels={"a": "1"})
            assert await kept.owners(made) == ["t"]
            await kept.until(lambda: kept.has(made), "the kind is followed")
            await without(admin, name)
            await kept.until(lambda: kept.state("TrainJob") == "absent", "the kind is gone")
            assert await kept.owners(made) == []

    async def test_while_the_api_server_is_away_it_tells_what_it_knows(
        self, own_server: ApiServer, own_stage: Stage
    ) -> None:
        made = await labelled(own_stage, "stays")
        async with follower(own_server.kubeconfig) as kept:
            await asyncio.to_thread(own_server.stop_apiserver)
            try:
                await kept.until(lambda: kept.state("Job") == "behind", "it is noticed")
                assert await kept.owners(made) == ["stays"]
                unheard_of = builders.thing("other", kind="Job", api_version="batch/v1", namespace="default")
                assert "did not" in await kept.owners(unheard_of)
            finally:
                await asyncio.to_thread(own_server.start_apiserver)
            new = await labelled(own_stage, "new")
            await kept.until(lambda: kept.has(new), "it follows again")
            await kept.until(lambda: kept.state("Job") == "followed", "and says so")

    async def test_a_watch_from_before_history_lists_anew(
        self, own_server: ApiServer, own_stage: Stage, tmp_path: Path
    ) -> None:
        stays, goes = await labelled(own_stage, "stays-too"), await labelled(own_stage, "goes")
        async with wire_to(own_server.kubeconfig, tmp_path) as (wire, kubeconfig), follower(kubeconfig) as kept:
            assert kept.has(goes)
            wire.cut()
            await remove(own_stage, goes)
            await asyncio.to_thread(own_server.forget_history)
            wire.mend()
            await kept.until(lambda: not kept.has(goes), "what went meanwhile is forgotten")
            assert kept.has(stays)
