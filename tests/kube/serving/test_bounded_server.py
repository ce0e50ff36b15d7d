from __future__ import annotations

import asyncio
import select
import socket
import ssl
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from cluster.certificates import make_certificates
from mldiagnostics_kube.serving import connections
from mldiagnostics_kube.serving.bounded_server import BoundedServer, Bounds
from mldiagnostics_kube.serving.connection import ConnectionTimes
from mldiagnostics_kube.serving.connections import ACCEPTED_AT_ONCE, HEAD_LINE_BYTES, HEAD_LINES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE_S = 60.0
LARGE = 2**20
SMALL = 2**10
BURST = 8
"""Handshakes at a time."""
UNHURRIED = ConnectionTimes(first_request_s=DEADLINE_S, handshake_wait_s=DEADLINE_S)
"""Clients of a busy machine have time for their first request."""
PATIENT = replace(UNHURRIED, young_s=DEADLINE_S, burst_s=DEADLINE_S)


class Client:
    """A raw connection, on which a test does what HTTP clients do not."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def post(self, size: int, body: bytes = b"") -> None:
        """Send the head of a request with a body of a size, and a part of the body."""
        await self.send(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + body)

    async def status(self) -> int:
        """Return the status of the next response; 0 if the connection is closed before."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return 0
            return int(head.split()[1])

    async def is_closed(self) -> bool:
        """Wait until the server has closed the connection."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                while await self._reader.read(2**16):
                    pass
            except ConnectionError:
                pass
        return True

    async def aclose(self) -> None:
        self._writer.transport.abort()
        await asyncio.sleep(0)


class Served:
    """A server that answers bodies once `release` is set; a path of `/page` is answered at once."""

    def __init__(self, stack: AsyncExitStack, bounds: Bounds) -> None:
        self._stack = stack
        self.rejected: list[str] = []
        self.closed: list[str] = []
        self.release = asyncio.Event()
        self.release.set()
        self.server = BoundedServer(self._route, bounds, rejected=self.rejected.append, closed=self.closed.append)
        self.port = 0
        self.tls: ssl.SSLContext | None = None

    def _route(self, request: web.BaseRequest) -> Any:
        return web.Response(text="page") if request.path == "/page" else self._answer

    async def _answer(self, body: bytes) -> web.Response:
        await self.release.wait()
        return web.Response(text=str(len(body)))

    async def client(self, address: str = "127.0.0.1") -> Client:
        streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, local_addr=(address, 0))
        client = Client(*streams)
        self._stack.push_async_callback(client.aclose)
        return client

    async def until_in_flight(self, requests: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while self.server.in_flight != requests:  # noqa: ASYNC110 - the number is polled
                await asyncio.sleep(0.01)


@asynccontextmanager
async def served(
    server_tls: ssl.SSLContext | None = None, *, tls: ssl.SSLContext | None = None, **bounds: Any
) -> AsyncIterator[Served]:
    """Serve with small bounds."""
    sizes = {"body_bytes": LARGE, "small_bytes": SMALL, "large_bytes": LARGE}
    usual: dict[str, Any] = {"connections": 8, **sizes, "read_s": DEADLINE_S, "times": UNHURRIED}
    async with AsyncExitStack() as stack:
        it = Served(stack, Bounds(**(usual | bounds)))
        it.tls = tls
        it.port = await stack.enter_async_context(it.server.serving(0, server_tls))
        yield it


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts of a server and of its clients."""
    files = make_certificates(tmp_path, hosts=["127.0.0.1"])
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.certificate("apiserver"), files.key("apiserver"))
    return server, ssl.create_default_context(cafile=files.ca)


async def test_idle_clients_over_tls_give_way_to_one_that_sends(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with served(contexts[0], tls=contexts[1], connections=4) as it:
        used = await it.client()
        await used.post(2, b"ab")
        assert await used.status() == 200
        idle = [await it.client() for _ in range(20)]
        sender = await it.client()
        await sender.post(2, b"ab")
        assert await sender.status() == 200
        assert all([await client.is_closed() for client in (used, *idle[:17])])
        assert set(it.closed) == {"TooMany"}


async def test_a_burst_waits_until_young_connections_have_sent_their_requests() -> None:
    async with served(connections=4, times=PATIENT) as it:
        first = [await it.client() for _ in range(4)]
        await first[3].post(1, b"x")
        assert await first[3].status() == 200
        later = [await it.client() for _ in range(8)]
        answers = [asyncio.create_task(answered(client)) for client in later]
        assert await answers[0] == 200, "an idle connection gives way"
        for client in first[:3]:
            await client.post(1, b"x")
            assert await client.status() == 200, "a young connection does not"
        assert await asyncio.gather(*answers) == [200] * 8


async def test_a_busy_event_loop_accepts_many_connections_in_one_turn() -> None:
    async with served(connections=200) as it, AsyncExitStack() as clients:
        waiting = set[socket.socket]()
        for _ in range(10 * ACCEPTED_AT_ONCE):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", it.port)))
            client.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
            client.setblocking(False)  # noqa: FBT003 - the socket's own signature
            waiting.add(client)
        turns = 0
        while waiting:
            time.sleep(0.005)  # noqa: ASYNC251 - other work of the event loop
            await asyncio.sleep(0)
            turns += 1
            waiting -= {*select.select(waiting, [], [], 0)[0]}
        assert turns < 5 * ACCEPTED_AT_ONCE


async def answered(client: Client) -> int:
    await client.post(1, b"x")
    return await client.status()


async def test_a_burst_waits_for_requests_in_flight() -> None:
    async with served(connections=2, times=PATIENT) as it:
        it.release.clear()
        clients = [await it.client() for _ in range(6)]
        answers = [asyncio.create_task(answered(client)) for client in clients]
        await it.until_in_flight(2)
        it.release.set()
        assert await asyncio.gather(*answers) == [200] * 6


async def test_in_a_flood_the_oldest_gives_way_at_once() -> None:
    async with served(connections=2, times=replace(PATIENT, burst_s=0.0)) as it:
        oldest, other = [await it.client() for _ in range(2)]
        newest = await it.client()
        assert await oldest.is_closed()
        assert [await answered(client) for client in (newest, other)] == [200, 200]
        assert it.closed == ["TooMany"]


@pytest.mark.parametrize("has_sent", [False, True])
async def test_an_address_that_opens_many_connections_closes_its_own(*, has_sent: bool) -> None:
    async with served(connections=4, times=replace(UNHURRIED, young_s=0.0, burst_s=0.0)) as it:
        honest = await it.client()
        for _ in range(12):
            flooding = await it.client("127.0.0.2")
            if has_sent:
                await answered(flooding)
        async with asyncio.timeout(DEADLINE_S):
            while len(it.closed) < 9:  # noqa: ASYNC110 - until all are accepted
                await asyncio.sleep(0.01)
        assert await answered(honest) == 200


async def test_an_address_that_connects_too_fast_costs_no_handshakes_and_others_are_served(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with served(contexts[0], tls=contexts[1], new_per_second=0.2) as it:
        assert await answered(await it.client("127.0.0.2")) == 200
        with pytest.raises((ConnectionError, ssl.SSLError)):  # closed before its handshake
            await connecting_for_ever(it, "127.0.0.2")
        assert "TooFast" in it.closed
        assert await answered(await it.client()) == 200


async def test_handshakes_have_a_rate_and_requests_of_open_connections_do_not_wait(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    times = replace(UNHURRIED)
    async with served(contexts[0], tls=contexts[1], handshakes_per_second=0.01, connections=64, times=times) as it:
        for _ in range(BURST - 1):
            assert await answered(await it.client("127.0.0.2")) == 200
        known = await it.client()
        assert await answered(known) == 200
        flood = [await asyncio.open_connection("127.0.0.1", it.port, local_addr=("127.0.0.3", 0)) for _ in range(4)]
        assert await answered(known) == 200
        object.__setattr__(times, "first_request_s", 0.0)  # all others have sent their first request
        for reader, writer in flood:  # closed late, without a handshake
            writer.write(client_hello(contexts[1]))
            async with asyncio.timeout(DEADLINE_S):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            writer.transport.abort()
        assert set(it.closed) == {"TimedOut"}
        assert await answered(known) == 200


def client_hello(tls: ssl.SSLContext) -> bytes:
    """Return the first message of a handshake; the answer to it costs the server most of the work."""
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        tls.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


async def connecting_for_ever(it: Served, address: str) -> None:
    while True:
        await it.client(address)


async def test_clients_that_gave_up_before_their_handshake_cost_none(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with served(contexts[0], tls=contexts[1], connections=64, handshakes_per_second=0.001) as it:
        for number in range(2 * BURST):  # the server accepts none of them before this test waits
            with socket.create_connection(("127.0.0.1", it.port), source_address=(f"127.0.1.{number + 1}", 0)):
                pass
        async with asyncio.timeout(DEADLINE_S):
            patient = await it.client()
        await patient.post(2, b"ab")
        assert await patient.status() == 200
        assert it.closed == []  # they closed their connections themselves


async def test_requests_in_flight_are_never_closed_for_others() -> None:
    async with served(connections=2) as it:
        it.release.clear()
        running = [await it.client() for _ in range(2)]
        for client in running:
            await client.post(2, b"ab")
        await it.until_in_flight(2)
        assert await (await it.client()).is_closed()
        it.release.set()
        assert [await client.status() for client in running] == [200, 200]
        assert it.closed == ["TooMany"]


async def test_clients_that_do_not_finish_their_first_request_are_closed(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    for limit_s in (1, 10, 30):
        async with served(contexts[0], times=ConnectionTimes(first_request_s=limit_s)) as it:
            try:
                clients = await unfinished(it, contexts[1])
            except OSError:  # on a busy machine a handshake may take longer
                continue
            assert all([await client.is_closed() for client in clients])
            return
    pytest.fail("no handshake was finished within its limit")


async def unfinished(it: Served, tls: ssl.SSLContext) -> tuple[Client, ...]:
    """Open connections without a handshake, with half of one, and with a handshake and half of a head."""
    no_handshake, half_a_handshake = await it.client(), await it.client()
    await half_a_handshake.send(b"\x16\x03\x01")
    it.tls = tls
    half_a_head = await it.client()
    await half_a_head.send(b"POST / HTTP/1.1\r\n")
    return no_handshake, half_a_handshake, half_a_head


async def test_idle_clients_are_closed_after_a_time() -> None:
    async with served(times=replace(UNHURRIED, idle_s=0.1)) as it:
        client = await it.client()
        await client.post(2, b"ab")
        assert await client.status() == 200
        assert await client.is_closed()
        assert it.closed == ["TimedOut"]


async def test_a_declared_length_costs_nothing() -> None:
    async with served() as it:
        for _ in range(5):
            await (await it.client()).post(LARGE)
        await it.until_in_flight(5)
        sender = await it.client()
        await sender.post(LARGE, b"x" * LARGE)
        assert await sender.status() == 200
        assert it.rejected == []


async def test_a_slow_large_body_gives_way_to_a_new_one() -> None:
    async with served() as it:
        slow, sender = await it.client(), await it.client()
        await slow.post(LARGE, b"x" * (LARGE - 1))
        async with asyncio.timeout(DEADLINE_S):
            while it.server.large_bytes < LARGE - 1:  # noqa: ASYNC110 - the number is polled
                await asyncio.sleep(0.01)
        await sender.post(LARGE, b"x" * LARGE)
        assert await sender.status() == 200
        assert await slow.is_closed()
        assert it.rejected == ["Busy"]
        assert it.server.large_bytes == 0


async def test_small_bodies_do_not_wait_for_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LINGER_S", DEADLINE_S)
    async with served() as it:
        it.release.clear()
        first, second = await it.client(), await it.client()
        await first.post(LARGE, b"x" * LARGE)
        async with asyncio.timeout(DEADLINE_S):
            while it.server.large_bytes < LARGE:  # noqa: ASYNC110 - the number is polled
                await asyncio.sleep(0.01)
        await second.post(LARGE, b"x" * LARGE)
        assert await second.status() == 429
        assert it.rejected == ["Busy"]
        small = await it.client()
        await small.post(SMALL, b"x" * SMALL)
        it.release.set()
        assert [await client.status() for client in (first, small)] == [200, 200]
        assert it.rejected == ["Busy"]


async def test_a_malformed_body_is_rejected_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with served(read_s=0.1) as it:
        client = await it.client()
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
        assert await client.status() in (400, 408)
        assert await client.is_closed()
    assert caplog.text == ""


async def test_a_request_whose_client_has_gone_is_cancelled() -> None:
    async with served() as it:
        it.release.clear()
        client = await it.client()
        await client.post(2, b"ab")
        await it.until_in_flight(1)
        await client.aclose()
        await it.until_in_flight(0)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /page HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2 * HEAD_LINE_BYTES,
        b"GET /" + b"x" * 2 * HEAD_LINE_BYTES,
        b"GET /page HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 2 * HEAD_LINES,
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
    ids=["a long line", "a long path", "many lines", "not HTTP"],
)
async def test_an_invalid_head_closes_the_connection_and_is_not_logged(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as it:
        client = await it.client()
        await client.send(head + b"\r\n\r\n")
        assert await client.status() == 400
        assert await client.is_closed()
        good = await it.client()
        await good.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await good.status() == 200
    assert caplog.text == ""


async def test_pipelined_requests_are_answered_one_by_one() -> None:
    async with served() as it:
        client = await it.client()
        await client.send(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        assert {await client.status() for _ in range(100)} == {200}


async def test_a_server_that_ends_as_a_client_arrives_logs_no_error() -> None:
    async def respond(_: web.BaseRequest) -> web.Response:
        return web.Response()

    loop, errors = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    ends, wakes = socket.socketpair()
    with ends, wakes, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
        server = connections.ConnectionServer(respond, limit=1, times=UNHURRIED, closed=lambda _: None)
        accepting = asyncio.create_task(server.accept(listener, None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        loop.add_reader(ends, accepting.cancel)
        wakes.send(b"end")  # the loop sees both in one turn, the end first
        with socket.create_connection(listener.getsockname()):
            await asyncio.wait([accepting])
            loop.remove_reader(ends)
            await asyncio.sleep(0)
    assert (accepting.cancelled(), errors) == (True, [])
