"""Coalesced writes of the status, sent over HTTP while changes, direct writes and outages interleave."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mldiagnostics_api.names import Phase
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus, ObjectMeta
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.status_writer import ObjectGone, StatusWriter
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

INTERVAL_S = 0.2
DEADLINE_S = 60
PHASES = (Phase.PENDING, Phase.RUNNING)


@dataclass
class StatusServer:
    """Accepts patches of the status of any object, and can answer slowly or not accept them."""

    cluster: ApiClient = field(init=False)
    received: dict[str, list[int]] = field(default_factory=dict)
    available: bool = True
    gone: bool = False
    concurrent: dict[str, int] = field(default_factory=dict)
    delay_s: float = 0.0

    async def patch(self, request: web.Request) -> web.Response:
        name = request.path.split("/")[-2]
        assert not self.concurrent.get(name), "writes of one object never overlap"
        if not self.available or self.gone:
            return web.json_response({"message": "no"}, status=404 if self.gone else 503)
        self.concurrent[name] = 1
        status: dict[str, Any] = (await request.json())[-1]["value"]
        await asyncio.sleep(self.delay_s * random.random())
        self.concurrent[name] = 0
        self.received.setdefault(name, []).append(int(status["message"]))
        return web.json_response({})


@pytest.fixture
async def server() -> AsyncIterator[StatusServer]:
    handler = StatusServer()
    app = web.Application()
    app.router.add_patch("/{path:.*}", handler.patch)
    async with TestServer(app) as serving:
        handler.cluster = ApiClient(Credentials(str(serving.make_url("")).rstrip("/"), fixed("")))
        yield handler
        await handler.cluster.aclose()


def writer(server: StatusServer, name: str, interval_s: float = INTERVAL_S) -> StatusWriter:
    meta = ObjectMeta.model_validate(builders.connection(name, namespace="ml", podName="a")["metadata"])
    return StatusWriter(
        server.cluster,
        OperatorMetrics(),
        CONNECTIONS,
        meta,
        me="me",
        holder=None,
        clock=utc_now,
        interval_s=interval_s,
    )


def status(number: int, phase: Phase) -> ConnectionStatus:
    return ConnectionStatus(phase=phase, message=str(number))


@dataclass
class History:
    """The changes of one object in their order, and the updates that its writer sent."""

    phases: list[Phase] = field(default_factory=list)
    direct: set[int] = field(default_factory=set)
    sent: list[tuple[float, int]] = field(default_factory=list)

    def build(self, number: int, phase: Phase) -> ConnectionStatus:
        self.sent.append((asyncio.get_running_loop().time(), number))
        return status(number, phase)


async def change(writer: StatusWriter, choice: random.Random) -> History:
    """Change the status of one object at random times."""
    history, phase = History(), Phase.PENDING
    for number in range(choice.randint(1, 25)):
        await asyncio.sleep(choice.choice((0.0, 0.0, 0.01, 0.05, 0.3)) * choice.random())
        if choice.random() < 0.1:
            phase = choice.choice(PHASES)
        history.phases.append(phase)
        if choice.random() < 0.1:
            history.direct.add(number)
            await writer.write(status(number, phase))
        else:
            writer.put(partial(history.build, number, phase), phase=phase)
    return history


@pytest.mark.parametrize("seed", range(3))
async def test_updates_of_many_objects_are_coalesced_as_a_property(server: StatusServer, seed: int) -> None:
    server.delay_s = 0.02
    names = [f"object-{number}" for number in range(25)]
    writers = {name: writer(server, name) for name in names}
    sending = [asyncio.create_task(each.send_updates()) for each in writers.values()]
    choices = (random.Random(f"{seed} {name}") for name in names)
    histories = await asyncio.gather(*map(change, writers.values(), choices))
    async with asyncio.timeout(30):
        for name, history in zip(names, histories, strict=True):
            while server.received.get(name, [-1])[-1] != len(history.phases) - 1:  # noqa: ASYNC110 - the server counts
                await asyncio.sleep(0.01)
    for task in sending:
        task.cancel()
    await asyncio.gather(*sending, return_exceptions=True)
    for name, history in zip(names, histories, strict=True):
        check(server.received[name], history)


def check(received: list[int], history: History) -> None:
    assert received == sorted(set(received)), "no status is sent twice, none after a newer one"
    assert set(received) == history.direct | {number for _, number in history.sent}
    for (earlier_at, earlier), (later_at, later) in pairwise(history.sent):
        phases = set(history.phases[earlier : later + 1])
        assert len(phases) > 1 or later_at - earlier_at >= INTERVAL_S, "one per interval and phase"


async def test_an_update_waits_for_the_interval_and_a_phase_does_not(server: StatusServer) -> None:
    one = writer(server, "one", interval_s=60.0)
    sending = asyncio.create_task(one.send_updates())
    await one.write(status(0, Phase.RUNNING))
    for number in range(1, 50):
        one.put(partial(status, number, Phase.RUNNING), phase=Phase.RUNNING)
    await asyncio.sleep(0.1)
    assert server.received["one"] == [0]
    one.put(partial(status, 50, Phase.SUCCEEDED), phase=Phase.SUCCEEDED)
    async with asyncio.timeout(DEADLINE_S):
        while len(server.received["one"]) < 2:  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.01)
    assert server.received["one"][-1] == 50
    sending.cancel()


async def test_an_update_that_the_api_server_did_not_accept_is_sent_later(server: StatusServer) -> None:
    one = writer(server, "one", interval_s=0.05)
    sending = asyncio.create_task(one.send_updates())
    server.available = False
    one.put(partial(status, 1, Phase.RUNNING), phase=Phase.RUNNING)
    await asyncio.sleep(0.2)
    server.available = True
    async with asyncio.timeout(DEADLINE_S):
        while not server.received:  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.01)
    assert server.received["one"] == [1]
    sending.cancel()


async def test_updates_end_when_the_object_is_gone(server: StatusServer) -> None:
    one = writer(server, "one", interval_s=0.01)
    server.gone = True
    one.put(partial(status, 1, Phase.RUNNING), phase=Phase.RUNNING)
    with pytest.raises(ObjectGone):
        await asyncio.wait_for(one.send_updates(), DEADLINE_S)
