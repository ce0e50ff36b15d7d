"""One Lease, held in turn by our election and by that of the official client."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.aio import config
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.lease import Leadership, LeaseTiming
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.envtest import ApiServer
    from kubernetes.aio.client import ApiClient as OfficialClient
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DURATION_S, RENEW_DEADLINE_S = 8, 6
TIMING = LeaseTiming(duration_s=DURATION_S, renew_deadline_s=RENEW_DEADLINE_S, retry_s=0.1)
DEADLINE_S = 60


def official_election(client: OfficialClient, namespace: str, leads: asyncio.Event) -> LeaderElection:
    async def lead() -> None:
        leads.set()

    return LeaderElection(
        Config(
            LeaseLock("it", namespace, "official", client),
            lease_duration=DURATION_S,
            renew_deadline=RENEW_DEADLINE_S,
            retry_period=1,
            onstarted_leading=lead,
            onstopped_leading=None,
        )
    )


@asynccontextmanager
async def official_candidate(api_server: ApiServer, namespace: str) -> AsyncIterator[asyncio.Event]:
    """Run a candidate of the official client; yield the event that it leads."""
    leads = asyncio.Event()
    client = await config.new_client_from_config(str(api_server.kubeconfig))
    running = asyncio.create_task(official_election(client, namespace, leads).run())
    try:
        yield leads
    finally:
        running.cancel()
        await asyncio.wait([running])
        await client.close()


def our_candidate(cluster: ApiClient, namespace: str) -> Leadership:
    return Leadership(cluster, identity="ours/uid/1", namespace=namespace, name="it", timing=TIMING)


async def spec_of(cluster: ApiClient, namespace: str) -> dict[str, Any]:
    path = path_to("coordination.k8s.io", "v1", "leases", namespace=namespace, name="it")
    spec: dict[str, Any] = (await cluster.get(path))["spec"]
    return spec


async def test_the_official_candidate_waits_for_the_release_of_our_lease(
    admin: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    leadership = our_candidate(admin, namespace)
    await asyncio.wait_for(leadership.acquire(), DEADLINE_S)
    holding = asyncio.create_task(leadership.hold())
    async with official_candidate(api_server, namespace) as official_leads:
        waiting = asyncio.create_task(official_leads.wait())
        done, _ = await asyncio.wait([waiting, holding], timeout=1.25 * DURATION_S)
        assert not done, "we renew the Lease, so nobody else takes it"
        holding.cancel()
        await asyncio.wait([holding])
        await leadership.release()
        await asyncio.wait_for(waiting, DEADLINE_S)
        spec = await spec_of(admin, namespace)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("official", DURATION_S)
    assert spec["leaseTransitions"] == 0, "deviation: the official client does not count changes of the holder"


async def test_our_candidate_waits_until_the_official_leader_is_silent(
    admin: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    await admin.create(
        path_to("coordination.k8s.io", "v1", "leases", namespace=namespace), {"metadata": {"name": "it"}}
    )
    leadership = our_candidate(admin, namespace)
    async with official_candidate(api_server, namespace) as official_leads:
        await asyncio.wait_for(official_leads.wait(), DEADLINE_S)
        acquiring = asyncio.create_task(leadership.acquire())
        done, _ = await asyncio.wait([acquiring], timeout=1.25 * DURATION_S)
        assert not done, "it renews the Lease, so we do not take it"
    await asyncio.wait_for(acquiring, DEADLINE_S)
    spec = await spec_of(admin, namespace)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("ours/uid/1", 1)
    async with official_candidate(api_server, namespace) as official_leads:
        await asyncio.wait_for(official_leads.wait(), DEADLINE_S)
    spec = await spec_of(admin, namespace)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("official", 1)


@pytest.mark.usefixtures("admin")
async def test_only_our_candidate_can_create_the_lease(api_server: ApiServer, namespace: str) -> None:
    """A deviation of 37.0: the official lock sends a parameter that its own client rejects."""
    async with await config.new_client_from_config(str(api_server.kubeconfig)) as client:
        with pytest.raises(ValidationError, match="pretty"):
            await official_election(client, namespace, asyncio.Event()).run()
