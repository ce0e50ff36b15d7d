from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.certificates import make_certificates
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.manifests.registration import AUTHOR_PATH
from mldiagnostics_webhook.limits import MAX_BODY_BYTES
from mldiagnostics_webhook.review_handler import LabelSource, ReviewResponse
from mldiagnostics_webhook.server import ReviewServer, target
from mldiagnostics_webhook.telemetry import WebhookMetrics
from support.cluster.reviews import encoded, pod_of, review_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE_S = 60
REVIEW = encoded(review_of(pod_of(None)))


class Echo:
    """Returns the arguments of the call once `release` is set."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.release.set()

    async def __call__(self, source: LabelSource, body: bytes, *, within_s: float) -> ReviewResponse:
        await self.release.wait()
        return ReviewResponse(200, json.dumps({"source": source, "bytes": len(body), "within_s": within_s}).encode())


class Served:
    def __init__(self, server: ReviewServer, echo: Echo, telemetry: WebhookMetrics, port: int) -> None:
        self.server, self.echo, self.telemetry, self.port = server, echo, telemetry, port

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def value(self, name: str, **labels: str) -> float | None:
        return self.telemetry.registry.get_sample_value(f"mldiagnostics_webhook_{name}", labels)

    def rejected(self, reason: str) -> float | None:
        return self.value("reviews_total", result="refused", reason=reason)

    async def until(self, reviews: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while self.value("reviews_in_flight") != reviews:  # noqa: ASYNC110 - the metric is polled
                await asyncio.sleep(0.01)

    async def release_when_closed(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            with suppress(ConnectionError):
                while True:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    await writer.wait_closed()
        self.echo.release.set()

    async def start_review(self, *, size: int, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send the head of a review of a size, and part of its body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"POST /mutate/workload HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + body)
        return reader, writer


@asynccontextmanager
async def served(*, read_s: float = DEADLINE_S) -> AsyncIterator[Served]:
    telemetry, echo = WebhookMetrics(), Echo()
    server = ReviewServer(echo, telemetry, read_s=read_s, finish_s=DEADLINE_S)
    async with server.serving(0, None) as port:
        yield Served(server, echo, telemetry, port)


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


async def post(client: aiohttp.ClientSession, url: str, body: bytes = REVIEW) -> tuple[int, Any]:
    async with client.post(url, data=body) as answer:
        return answer.status, await answer.json() if answer.status == 200 else await answer.text()


async def test_each_label_has_a_path(client: aiohttp.ClientSession) -> None:
    async with served() as it:
        for source in LabelSource:
            status, reply = await post(client, it.url(f"/mutate/{source}"))
            assert (status, reply["source"], reply["bytes"]) == (200, source, len(REVIEW))
        assert (await post(client, it.url("/mutate/pods")))[0] == 404
        async with client.get(it.url("/mutate/workload")) as answer:
            assert answer.status == 405
        assert it.value("review_duration_seconds_count") == 2


async def test_schedules_have_a_path_of_their_own(client: aiohttp.ClientSession) -> None:
    review = encoded(review_of({"metadata": {"name": "nightly"}, "spec": {}}))
    async with served() as it:
        status, reply = await post(client, it.url(AUTHOR_PATH), review)
        assert (status, reply["response"]["allowed"], reply["response"]["patchType"]) == (200, True, "JSONPatch")
        async with client.get(it.url(AUTHOR_PATH)) as answer:
            assert answer.status == 405


async def test_lookups_end_before_the_timeout_of_the_call(client: aiohttp.ClientSession) -> None:
    async with served() as it:
        time = asyncio.get_running_loop().time
        for query, timeout_s in (("", 3), ("?timeout=2s", 2), ("?timeout=500ms", 0.5), ("?timeout=soon", 3)):
            start_s = time()
            _, reply = await post(client, it.url(f"/mutate/workload{query}"))
            left_s, taken_s = timeout_s - 0.25, time() - start_s
            assert max(left_s - taken_s, 0) <= reply["within_s"] <= left_s, query
        assert (await post(client, it.url("/mutate/workload?timeout=1ms")))[1]["within_s"] == 0


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_go_durations_are_parsed(hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
    path = f"/mutate/namespace?a=b&timeout={hours}h{minutes}m{seconds}.{milliseconds:03d}s"
    assert target(path).source is LabelSource.NAMESPACE
    assert target(path).timeout_s == pytest.approx(hours * 3600 + minutes * 60 + seconds + milliseconds / 1000)


@given(st.text(max_size=10))
def test_any_query_gives_a_duration(text: str) -> None:
    assert target(text).timeout_s >= 0
    assert target(f"/mutate/workload?timeout={text}").timeout_s >= 0


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_may_have_at_most_2_mib(client: aiohttp.ClientSession, chunked: bool) -> None:
    async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    async with served() as it:
        for size, expected in ((MAX_BODY_BYTES - 1, 200), (MAX_BODY_BYTES + 1, 413)):
            body = b" " * size
            data: Any = in_chunks(body) if chunked else BytesIO(body)
            try:
                async with client.post(it.url("/mutate/workload"), data=data) as answer:
                    assert answer.status == expected
            except aiohttp.ClientConnectionError:  # the server closed the connection during the upload
                assert expected == 413
        assert it.rejected("TooLarge") == 1


async def test_a_body_that_does_not_arrive_times_out() -> None:
    async with served(read_s=0.1) as it:
        reader, writer = await it.start_review(size=100, body=b"{")
        answer = await asyncio.wait_for(reader.read(), DEADLINE_S)  # until the connection is closed
        assert answer.startswith(b"HTTP/1.1 408")
        assert it.rejected("ReadTimedOut") == 1
        writer.close()
        await writer.wait_closed()


async def test_at_shutdown_running_reviews_finish(client: aiohttp.ClientSession) -> None:
    async with served() as it:
        it.echo.release.clear()
        running = asyncio.create_task(post(client, it.url("/mutate/workload")))
        await it.until(1)
        release = asyncio.create_task(it.release_when_closed())
    await release
    assert (await running)[0] == 200


async def test_after_leave_connections_close_with_their_response(client: aiohttp.ClientSession) -> None:
    async with served() as it:
        async with client.post(it.url("/mutate/workload"), data=REVIEW) as answer:
            assert "Connection" not in answer.headers
        it.server.leave()
        async with client.post(it.url("/mutate/workload"), data=REVIEW) as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")


async def test_reviews_are_served_over_tls(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    files = make_certificates(tmp_path, hosts=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate("apiserver"), files.key("apiserver"))
    trust = ssl.create_default_context(cafile=files.ca)
    async with ReviewServer(Echo(), WebhookMetrics()).serving(0, context) as port:
        async with client.post(f"https://127.0.0.1:{port}/mutate/workload", data=REVIEW, ssl=trust) as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.ClientError):
            await client.post(f"http://127.0.0.1:{port}/mutate/workload", data=REVIEW)
