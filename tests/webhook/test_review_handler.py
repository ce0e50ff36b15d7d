from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import tracemalloc
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.identity import run_id
from mldiagnostics_api.injection import MAX_POD_BYTES, InjectionSettings
from mldiagnostics_api.publication import Publication
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_webhook.cache import MetadataCache
from mldiagnostics_webhook.review_handler import LabelSource, ReviewHandler, ReviewResponse
from mldiagnostics_webhook.telemetry import WebhookMetrics
from support.cluster.builders import CREATED
from support.cluster.metadata_server import metadata_server
from support.cluster.reviews import LABEL, encoded, job, jobset, namespace, pod_of, review_of, spoiled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.cluster.metadata_server import MetadataServer

JOBSETS, JOBS, NAMESPACES = "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/apis/batch/v1/jobs", "/api/v1/namespaces"
REVIEWS = Path(__file__).parents[1] / "api/injection/reviews"
SPOILED_AT_ONCE = 100
PLENTY_S = 60.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)
RUN = run_id(
    cluster="train-cluster", namespace="ml", kind="JobSet", name="trainer", created=datetime.fromisoformat(CREATED)
)


class Webhook:
    """Handler with a cache that watches a metadata server."""

    def __init__(self, server: MetadataServer, cache: MetadataCache, telemetry: WebhookMetrics) -> None:
        self.server = server
        self.telemetry = telemetry
        settings = InjectionSettings(
            cluster="train-cluster", sinks=("jsonl:",), control_plane_url="https://control:8443"
        )
        self.handler = ReviewHandler(cache, settings, telemetry, lambda: NOW)

    async def answer(
        self, review: Any, source: LabelSource = LabelSource.WORKLOAD, within_s: float = PLENTY_S
    ) -> ReviewResponse:
        body = review if isinstance(review, bytes) else encoded(review)
        return await self.handler.answer(source, body, within_s=within_s)

    async def operations(
        self, review: Any, source: LabelSource = LabelSource.WORKLOAD, within_s: float = PLENTY_S
    ) -> list[Any]:
        return patch_of(await self.answer(review, source, within_s))

    def counted(self) -> dict[tuple[str, str], float]:
        samples = (sample for family in self.telemetry.registry.collect() for sample in family.samples)
        return {
            (sample.labels["result"], sample.labels["reason"]): sample.value
            for sample in samples
            if sample.name == "mldiagnostics_webhook_reviews_total"
        }


def patch_of(answer: ReviewResponse) -> list[Any]:
    """Return the patch of a response, which must allow the request."""
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert response["allowed"] is True
    return json.loads(base64.b64decode(response.get("patch", "W10=")))  # type: ignore[no-any-return]


@asynccontextmanager
async def webhook(
    labels: dict[str, str] | None = None,
    *,
    namespace_labels: dict[str, str] | None = None,
    lookup_s: float = PLENTY_S,
) -> AsyncIterator[Webhook]:
    """Webhook with a cached JobSet with these labels, its Job and their namespace."""
    owner = jobset(labels=labels)
    objects = {
        NAMESPACES: [namespace(**(namespace_labels or {}))],
        JOBSETS: [owner],
        JOBS: [job(owner)],
    }
    async with metadata_server(objects) as (server, cluster):
        telemetry = WebhookMetrics()
        cache = MetadataCache(cluster, telemetry, lookup_s=lookup_s)
        async with cache.running():
            async with asyncio.timeout(PLENTY_S):
                while not cache.synced:  # noqa: ASYNC110 - the cache is polled
                    await asyncio.sleep(0.01)
            yield Webhook(server, cache, telemetry)


POD = pod_of(job(jobset()))


async def test_a_pod_of_a_labelled_workload_gets_a_run() -> None:
    async with webhook(LABEL) as it:
        patched = jsonpatch.apply_patch(POD, await it.operations(review_of(POD)))
        assert it.server.requested == []
    assert patched["metadata"]["annotations"]["diagon.gke.io/run-id"] == RUN
    assert {"name": "MLDIAG_RUN_ID", "value": RUN} in patched["spec"]["containers"][0]["env"]
    assert it.counted() == {("injected", "Injected"): 1}


async def test_the_next_pod_gets_the_control_plane_that_is_published_for_its_namespace() -> None:
    published = [
        Publication(url="https://first:8443", ca="one", namespaces=frozenset({"ml", "other"})),
        Publication(url="https://second:8443", ca="two"),
        Publication(url="https://third:8443", namespaces=frozenset({"other"})),
        None,
    ]
    given = []
    plain = {**POD, "spec": {**POD["spec"], "serviceAccountName": "default"}}
    async with webhook(LABEL) as it:
        for publication in published:
            it.handler.use(publication)
            pod = jsonpatch.apply_patch(plain, await it.operations(review_of(plain)))
            (url,) = (
                variable["value"]
                for variable in pod["spec"]["containers"][0]["env"]
                if variable["name"] == "MLDIAG_CONTROL_PLANE_URL"
            )
            given.append((url, pod["metadata"]["annotations"].get("diagon.gke.io/control-plane-ca")))
    setting = ("https://control:8443", None)
    assert given == [("https://first:8443", "one"), ("https://second:8443", "two"), setting, setting]


async def test_the_path_opts_in_before_the_watch_sees_the_label() -> None:
    async with webhook() as it:
        assert await it.operations(review_of(POD), LabelSource.WORKLOAD) == []
        assert await it.operations(review_of(POD), LabelSource.NAMESPACE) != []
    assert it.counted() == {("injected", "Injected"): 1, ("skipped", "NoLabel"): 1}


async def test_a_dry_run_gets_the_same_patch_and_a_second_call_none() -> None:
    async with webhook(LABEL) as it:
        operations = await it.operations(review_of(POD))
        assert await it.operations(review_of(POD, dryRun=True)) == operations
        patched = jsonpatch.apply_patch(POD, operations)
        assert await it.operations(review_of(patched)) == []


async def test_a_pod_that_opted_in_carries_the_reason_if_it_gets_no_run() -> None:
    async with webhook(namespace_labels=LABEL) as it:
        pod = pod_of(job(jobset(uid="of-another"), uid="forged"))
        (operation,) = await it.operations(review_of(pod), LabelSource.NAMESPACE)
    assert operation["path"] == "/metadata/annotations/diagon.gke.io~1injection"
    assert operation["value"].startswith("OwnerNotFound: ")
    assert it.counted() == {("skipped", "OwnerNotFound"): 1}


@pytest.mark.parametrize("collection", [JOBS, JOBSETS, NAMESPACES])
@pytest.mark.parametrize("status", [403, 500])
async def test_an_api_server_that_fails_leaves_the_pod_without_a_run(collection: str, status: int) -> None:
    async with webhook(LABEL) as it:
        it.server.status[collection] = status
        pod = pod_of(job(jobset(uid="new"), uid="new")) if collection == JOBS else POD
        if collection == JOBSETS:
            it.server.kinds[JOBS].append(job(jobset(uid="new"), "trainer-new"))
            pod = pod_of(job(jobset(), "trainer-new"))
        review = review_of(pod, namespace="unknown" if collection == NAMESPACES else "ml")
        (operation,) = await it.operations(review, LabelSource.NAMESPACE)
        assert (operation["op"], operation["path"]) == ("add", "/metadata/annotations/diagon.gke.io~1injection")
        assert operation["value"].startswith("OwnersUnknown: the owners of the pod could not be read: ")
    assert it.counted() == {("failed", "OwnersUnknown"): 1}


async def test_a_pod_that_did_not_opt_in_is_not_annotated_if_its_namespace_is_unknown() -> None:
    async with webhook() as it:
        it.server.status[NAMESPACES] = 500
        assert await it.operations(review_of(POD, namespace="unknown"), LabelSource.WORKLOAD) == []
        lone = {**POD, "metadata": {"name": "notebook", "labels": LABEL}}
        (operation,) = await it.operations(review_of(lone, namespace="unknown"), LabelSource.WORKLOAD)
        assert operation["value"]["diagon.gke.io/injection"].startswith("OwnersUnknown: ")
    assert it.counted() == {("failed", "OwnersUnknown"): 2}


@pytest.mark.parametrize(
    ("labelled", "kind", "level"),
    [
        (LABEL, "Deployment", logging.INFO),
        (LABEL, "JobSet", logging.WARNING),
        ({}, "Deployment", logging.DEBUG),
    ],
    ids=["usual in a labelled namespace", "owner missing after opt-in", "no opt-in"],
)
async def test_the_log_level_depends_on_the_reason(
    caplog: pytest.LogCaptureFixture, labelled: dict[str, str], kind: str, level: int
) -> None:
    caplog.set_level(logging.DEBUG)
    replicas = {**job(None), "apiVersion": "apps/v1", "kind": "ReplicaSet"}
    async with webhook(namespace_labels=labelled) as it:
        it.server.kinds["/apis/apps/v1/replicasets"] = [replicas]
        pod = pod_of(job(jobset(), uid="gone")) if kind == "JobSet" else pod_of(replicas)
        await it.operations(review_of(pod), LabelSource.WORKLOAD)
    (record,) = [record for record in caplog.records if record.name.endswith(".review_handler")]
    assert record.levelno == level
    assert "A pod of" in record.getMessage()


async def test_a_slow_api_server_delays_no_review() -> None:
    async with webhook(LABEL, lookup_s=1.0) as it:  # at the end the cache waits for open requests
        it.server.slow_s = 3600
        pod = pod_of(job(jobset(), uid="new"))
        (operation,) = await it.operations(review_of(pod), LabelSource.NAMESPACE, within_s=0.05)
        assert "did not answer in time" in operation["value"]
        assert it.counted() == {("failed", "OwnersUnknown"): 1}
        it.server.slow_s = 0.0


async def test_reviews_that_wait_for_their_owners_are_not_kept_parsed() -> None:
    async with webhook(LABEL, lookup_s=1.0) as it:  # at the end the cache waits for open requests
        it.server.slow_s = 3600
        review = review_of(pod_of(job(jobset(), uid="new")))
        review["request"]["options"] = [{"": 0}] * 5000
        body = encoded(review)
        answers = [asyncio.create_task(it.answer(body)) for _ in range(20)]
        tracemalloc.start()
        try:
            await asyncio.sleep(0)  # each has parsed its body
            assert tracemalloc.get_traced_memory()[0] < len(answers) * len(body)
        finally:
            tracemalloc.stop()
        assert [patch_of(await answer) for answer in answers] == [[]] * len(answers)
        it.server.slow_s = 0.0


async def test_a_pod_near_the_limit_of_etcd_gets_no_patch_and_its_client_a_warning() -> None:
    async with webhook(LABEL) as it:
        review = review_of({**POD, "filler": "x" * MAX_POD_BYTES})
        answer = await it.answer(review)
    assert patch_of(answer) == []
    (warning,) = json.loads(answer.body)["response"]["warnings"]
    assert warning.startswith("mldiagnostics: no run is injected into the pod: ")
    assert len(warning) < 256, "the API server cuts longer ones"
    assert it.counted() == {("skipped", "PodTooLarge"): 1}


async def test_other_reviews_are_allowed() -> None:
    async with webhook(LABEL) as it:
        assert await it.operations(review_of(POD, operation="UPDATE")) == []
        assert await it.operations({**review_of(POD), "kind": "Other"}) == []
        assert (await it.answer(b"{}")).status == 400
    assert it.counted() == {("skipped", "NotPodCreation"): 1, ("unreadable", "UnreadableReview"): 2}


@pytest.mark.parametrize(
    "pod", [None, [], {}, {"metadata": {}}, {**POD, "spec": {"containers": None}}, {**POD, "spec": 7}]
)
async def test_invalid_pods_are_allowed(pod: Any) -> None:
    async with webhook(namespace_labels=LABEL) as it:
        operations = await it.operations(review_of(pod), LabelSource.NAMESPACE)
    assert [op for op in operations if "annotations" not in op["path"]] == []
    assert sum(it.counted().values()) == 1
    assert ("failed", "InternalError") not in it.counted()


async def test_an_internal_error_allows_the_pod_with_a_count_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ApiClient(Credentials("http://127.0.0.1:1", fixed("")))
    await cluster.aclose()  # its calls now raise an unexpected exception
    telemetry = WebhookMetrics()
    broken = ReviewHandler(MetadataCache(cluster, telemetry), InjectionSettings(cluster="c"), telemetry)
    answer = await broken.answer(LabelSource.NAMESPACE, encoded(review_of(POD)), within_s=PLENTY_S)
    assert patch_of(answer) == []
    (warning,) = json.loads(answer.body)["response"]["warnings"]
    assert len(warning) <= 120
    assert "Review review-1 failed" in caplog.text
    assert telemetry.registry.get_sample_value(
        "mldiagnostics_webhook_reviews_total", {"result": "failed", "reason": "InternalError"}
    )


@pytest.fixture(scope="module")
def shared_webhook() -> Iterator[tuple[asyncio.Runner, Webhook]]:
    """A webhook for many examples."""
    with asyncio.Runner() as runner:
        context = webhook(namespace_labels=LABEL)
        it = runner.run(context.__aenter__())
        yield runner, it
        runner.run(context.__aexit__(None, None, None))


def base_reviews() -> list[Any]:
    """Return reviews from real controllers, and of a pod with cached owners."""
    recorded = [json.loads(file.read_text())["review"] for file in sorted(REVIEWS.glob("*.json"))]
    return [*([review_of(POD)] * 5), review_of(POD["spec"]), *recorded]


@given(seed=st.integers(0, 2**64), source=st.sampled_from(LabelSource))
def test_hostile_reviews_are_never_denied_and_break_nothing(
    shared_webhook: tuple[asyncio.Runner, Webhook], seed: int, source: LabelSource
) -> None:
    """A hundred reviews per example: 10⁵ in the fuzz profile."""
    runner, it = shared_webhook
    rng, reviews = random.Random(seed), base_reviews()

    async def send() -> None:
        for _ in range(SPOILED_AT_ONCE):
            body = spoiled(rng.choice(reviews), rng)
            answer = await it.answer(body, source)
            if answer.status == 200:
                assert {operation["op"] for operation in patch_of(answer)} <= {"add"}, body
            else:
                assert answer.status == 400, body

    runner.run(send())
    assert ("failed", "InternalError") not in it.counted()
