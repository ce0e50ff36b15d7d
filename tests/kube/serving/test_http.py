import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest
from mldiagnostics_kube.serving.http import CONNECTIONS, serving
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families


@dataclass
class Health:
    alive: bool = True
    serves: bool = True

    def live(self) -> tuple[bool, str]:
        return self.alive, "alive"

    def ready(self) -> tuple[bool, str]:
        return self.serves, "ready"


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_probes_report_the_current_health() -> None:
    health = Health()
    async with serving(0, health, bytes) as port:
        assert await get(port, "/healthz") == (200, "alive\n")
        assert await get(port, "/readyz") == (200, "ready\n")
        health.serves = False
        assert await get(port, "/readyz") == (503, "ready\n")
        assert await get(port, "/healthz") == (200, "alive\n")
        health.alive = False
        assert await get(port, "/healthz") == (503, "alive\n")


async def test_metrics_are_in_the_format_of_prometheus() -> None:
    registry = CollectorRegistry()
    Gauge("height", "of it", registry=registry).set(7)
    async with serving(0, Health(), lambda: generate_latest(registry)) as port:
        _, text = await get(port, "/metrics")
    (family,) = text_string_to_metric_families(text)
    assert (family.name, family.samples[0].value) == ("height", 7)


async def test_silent_clients_do_not_keep_probes_waiting() -> None:
    async with serving(0, Health(), bytes) as port, AsyncExitStack() as stack:
        for _ in range(CONNECTIONS * 2):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert await get(port, "/healthz") == (200, "alive\n")


async def test_a_client_gets_one_response_for_each_connection() -> None:
    """A client that asks for metrics without end, and reads nothing, must not cost processor time."""
    rendered = 0

    def exposition() -> bytes:
        nonlocal rendered
        rendered += 1
        return b"height 7\n"

    async with serving(0, Health(), exposition) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        received = await reader.read()
        writer.close()
    assert received.count(b"HTTP/1.1 200") == rendered == 1
    assert b"Connection: close" in received


async def test_other_paths_and_methods_are_rejected() -> None:
    async with serving(0, Health(), bytes) as port, aiohttp.ClientSession() as session:
        assert (await get(port, "/"))[0] == 404
        async with session.post(f"http://127.0.0.1:{port}/metrics", data=b"x" * 2**20) as answer:
            assert answer.status == 405


async def test_a_taken_port_is_an_error_and_is_free_after_the_block() -> None:
    async with serving(0, Health(), bytes) as port:
        with pytest.raises(OSError, match=str(port)):
            async with serving(port, Health(), bytes):
                pass
    async with serving(port, Health(), bytes) as again:
        assert again == port
