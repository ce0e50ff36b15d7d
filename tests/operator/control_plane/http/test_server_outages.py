"""The control plane while its clients, its API server or its storage of objects are away."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from mldiagnostics.control_plane.endpoint import PLANE_URL, endpoint
from mldiagnostics.control_plane.report import RunSnapshot
from mldiagnostics.control_plane.reporter import Reporter
from mldiagnostics.goodput.events.conversion import payload_of
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.records import GOODPUT, Record
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.identity import lookups
from mldiagnostics_operator.runs.watches.pod_watches import PodWatches
from support.cluster.control_planes import make_account, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.control_planes import Answer, Running

pytestmark = pytest.mark.apiserver

DEADLINE_S = 120
HOUR_S = 3600
STEPS_PER_SECOND = 10


async def until(report: Callable[[], Awaitable[Answer]], *statuses: int) -> None:
    """Report until the answer has one of the statuses."""
    async with asyncio.timeout(DEADLINE_S):
        while (await report()).status not in statuses:  # noqa: ASYNC110 - asks the server
            await asyncio.sleep(0.5)  # as a client does, which has a rate


def resigned(token: str, key_file: Path, **claims: Any) -> str:
    """Return a token of the cluster's issuer with other claims."""
    head, payload, _ = token.split(".")
    document = json.loads(base64.urlsafe_b64decode(payload + "==")) | claims
    payload = base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
    key = load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signature = key.sign(f"{head}.{payload}".encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{head}.{payload}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.fixture
async def watched_pods(plane: Running, namespace: str) -> AsyncIterator[None]:
    """Watch the pods of runs, whose tokens end with them."""
    watches = PodWatches(plane.cluster, [namespace], lambda _: None, plane.telemetry, is_followed=lambda _: True)
    with watches.deleted_pods.passed_to(plane.plane.pod_gone, plane.plane.pods_missed):
        watching = asyncio.create_task(watches.run())
        yield
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_an_expired_token_is_rejected_although_its_issuer_signed_it(
    plane: Running, api_server: ApiServer
) -> None:
    client = await plane.reporter()
    key, now = api_server.ca.with_name("service-account.key"), int(time.time())
    assert (await client.report(token=resigned(client.token, key, exp=now + 600))).status == 200
    expired = resigned(client.token, key, iat=now - 7200, nbf=now - 7200, exp=now - 3600)
    answer = await client.report(token=expired)
    assert (answer.status, "token: is not valid" in answer.body["error"]) == (401, True)


async def test_the_use_of_a_token_ends_with_the_token(cluster: ApiClient, namespace: str, tmp_path: Path) -> None:
    await make_account(cluster, namespace)
    start = time.time()
    now = [start]
    async with serving(cluster, namespace, tmp_path, clock=lambda: now[0]) as plane:
        client = await plane.reporter()
        for after_s, reviews in ((0, 1), (299, 1), (301, 2), (599, 2), (900, 3)):
            now[0] = start + after_s
            assert (await client.report()).status == 200  # the clock of the API server does not move
            assert plane.value("lookups_total", kind="tokenreview") == reviews, after_s


@pytest.mark.usefixtures("watched_pods")
async def test_reports_go_on_while_etcd_is_away_and_after_the_watches_have_expired(
    plane: Running, api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, fresh = await plane.reporter("known-0"), await plane.reporter("fresh-0")
    gone = await plane.reporter("gone-0", labels={RUN_LABEL: "any"})
    assert (await known.report()).status == 200
    assert (await gone.report()).status == 200
    await asyncio.to_thread(api_server.stop_etcd)
    assert (await known.report()).status == 200
    with monkeypatch.context() as usual:
        usual.setattr(lookups, "LOOKUP_S", limits.LOOKUP_S)
        refused = await fresh.report()
        assert (refused.status, refused.headers.get("Retry-After")) == (503, "5"), refused.body
        await asyncio.to_thread(api_server.start_etcd)
        await until(fresh.report, 200)
    pod = f"/registry/pods/{namespace}/gone-0"
    await asyncio.to_thread(api_server.forget_history, deleted=pod)  # watches get `410 Gone`, and miss the deletion
    assert (await known.report()).status == 200
    assert (await fresh.report()).status == 200
    await until(gone.report, 401, 403)


async def test_an_hour_without_the_operator_is_reported_afterwards(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as before:
        client = await before.reporter()
        (tmp_path / "token").write_text(client.token)
        port = int(before.url.rpartition(":")[2])
    given = endpoint(before.url, PLANE_URL, token_file=str(tmp_path / "token"), ca_file=str(tmp_path / "pki/ca.crt"))
    origin = Origin(client.run, "job", "/storage", "0a0a0a0a", "trainer-0")
    phase = ["Active"]
    reporter = Reporter(given, origin, host={}, leads=True)
    reporter.start(lambda: RunSnapshot(phase[0]))
    start = (int(time.time()) - HOUR_S) * 1_000_000
    spacing = 1_000_000 // STEPS_PER_SECOND
    events = [Event(start + n * spacing, EventCode.STEP_START, n) for n in range(HOUR_S * STEPS_PER_SECOND)]
    records = [Record("event", each.t / 1e6, GOODPUT, payload=payload_of(each, client.run)) for each in events]
    await asyncio.to_thread(reporter.sink.make(origin).write, records)
    phase[0] = "Completed"
    async with serving(cluster, namespace, tmp_path, control_plane_port=port) as after:
        assert await asyncio.to_thread(reporter.finish, DEADLINE_S)
        run = await after.until(client.run, lambda run: run.goodput and run.goodput.last_step == events[-1].arg)
    expected = History()
    for event in events:
        expected.add(event)
    assert run.phase == "Completed"
    assert run.goodput is not None
    account = expected.of(events[-1].t).account(round(run.goodput.as_of * 1e6))
    assert run.goodput.productive == account.productive / 1e6
    assert run.goodput.elapsed == account.elapsed / 1e6
