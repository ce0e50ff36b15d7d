"""The reader of the published control plane follows a ConfigMap of a real API server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.publication import Publication
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import Lifetimes, new_authority
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_webhook.publication import PublicationReader
from support.cluster.publications import PUBLICATION, account, empty_publication
from support.servers.wire import wire_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60
CA = pem.of_certificates([new_authority("control", datetime.now(UTC), Lifetimes()).certificate]).decode()
FIRST = Publication(url="https://first.ml.svc:8443", ca=CA)
SECOND = Publication(url="https://second.ml.svc:8443", ca=CA, namespaces=frozenset({"ml"}))


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - polls the reader
            await asyncio.sleep(0.01)


async def test_the_publication_follows_every_change_and_keeps_the_latest_while_the_api_server_is_away(
    api_server: ApiServer, admin: ApiClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Publication | None] = []
    async with wire_to(api_server.kubeconfig, tmp_path) as (wire, kubeconfig):
        client = await ApiClient.connect({"KUBECONFIG": str(kubeconfig)})
        reader = PublicationReader(client, seen.append, poll_s=0.01)
        wire.cut()
        async with reader.running():
            await until(lambda: "cannot be read, it is retried" in caplog.text)
            assert not reader.settled
            wire.mend()
            await until(lambda: reader.settled)
            async with empty_publication(admin):
                await admin.patch(PUBLICATION, {"data": FIRST.data()})
                await until(lambda: seen == [FIRST])
                wire.cut()
                await until(lambda: caplog.text.count("it is retried") == 2)
                wire.mend()
                await admin.patch(PUBLICATION, {"data": SECOND.data()})
                await until(lambda: seen == [FIRST, SECOND])
                await admin.patch(PUBLICATION, {"data": {"ca.crt": CA.replace("A", "?")}})
                await until(lambda: seen == [FIRST, SECOND, None])
                await admin.patch(PUBLICATION, {"data": FIRST.data()})
                await until(lambda: seen[3:] == [Publication(url=FIRST.url, ca=CA, namespaces=SECOND.namespaces)])
            await until(lambda: seen[4:] == [None])
        await client.aclose()
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 3, "an absent publication causes no warning"
    assert warnings[2].startswith("ConfigMap kube-public/mldiagnostics-control-plane: ca.crt: ")


async def test_without_the_right_to_read_pods_get_no_control_plane_and_the_log_names_the_right(
    api_server: ApiServer, admin: ApiClient, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Publication | None] = []
    async with account(api_server, admin, namespace) as client:
        reader = PublicationReader(client, seen.append, poll_s=0.01)
        async with empty_publication(admin), reader.running():
            await admin.patch(PUBLICATION, {"data": FIRST.data()})
            await until(lambda: 'cannot get resource "configmaps"' in caplog.text)
    assert reader.settled
    assert seen == []
