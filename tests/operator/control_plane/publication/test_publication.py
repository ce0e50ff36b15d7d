"""The certificate and the address of the control plane, kept on a real API server with the least rights."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE, Publication
from mldiagnostics_kube.certificates import ServingCertificate, pem
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, new_authority
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.publication import publication
from mldiagnostics_operator.control_plane.publication.publication import LIFETIMES, OVERLAP
from support.cluster.publications import PUBLICATION, account, empty_publication
from support.servers.handshakes import shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

apiserver = pytest.mark.apiserver

DEADLINE_S = 60
NOW = datetime.now(UTC)
SECRET = "certificates"
RIGHTS = [("secrets", verb) for verb in ("get", "create", "patch")] + [
    ("configmaps", verb) for verb in ("get", "patch")
]


def settings(namespace: str, **more: Any) -> OperatorConfig:
    return OperatorConfig(
        pod_namespace=namespace,
        control_plane_service="control",
        control_plane_publish=True,
        control_plane_secret=SECRET,
        **more,
    )


@asynccontextmanager
async def restricted(
    server: ApiServer, admin: ApiClient, namespace: str, rights: list[tuple[str, str]]
) -> AsyncIterator[ApiClient]:
    """Connect as an account with these rights to the two objects."""
    names = {"secrets": (namespace, SECRET), "configmaps": (PUBLICATION_NAMESPACE, PUBLICATION_NAME)}
    rules = [
        (
            names[resource][0],
            {"apiGroups": [""], "resources": [resource], "resourceNames": [names[resource][1]], "verbs": [verb]},
        )
        for resource, verb in rights
    ]
    async with account(server, admin, namespace, rules) as client:
        yield client


async def until(holds: Callable[[], Any]) -> Any:
    async with asyncio.timeout(DEADLINE_S):
        while not (result := await holds()):  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(0.02)
    return result


async def published(admin: ApiClient) -> Publication | None:
    return Publication.of((await admin.get(PUBLICATION)).get("data") or {})


def accepted(serving: ServingCertificate, name: str, ca: str) -> bool:
    """Return whether a client with the published certificates accepts the server."""
    trusted = [KeyPair(certificate, None) for certificate in pem.certificates(ca.encode())]  # type: ignore[arg-type]
    try:
        return bool(shown(serving.context, name, trusted))
    except ssl.SSLError:
        return False


@apiserver
async def test_clients_of_the_published_address_accept_the_server(
    api_server: ApiServer, admin: ApiClient, namespace: str
) -> None:
    config = settings(namespace, watch_namespaces=("ml", "research"))
    async with restricted(api_server, admin, namespace, RIGHTS) as client, empty_publication(admin):
        async with publication.certificate(client, config) as serving:
            first = await until(lambda: published(admin))
            assert accepted(serving, f"control.{namespace}.svc", first.ca)
            await admin.patch(PUBLICATION, {"data": {"ca.crt": "damaged", "url": "http://elsewhere"}})

            async def repaired() -> bool:
                return await published(admin) == first

            await until(repaired)
        assert first.url == f"https://control.{namespace}.svc:8443"
        assert first.namespaces == {"ml", "research"}
        async with publication.certificate(client, settings(namespace, control_plane_port=443)) as serving:

            async def moved() -> bool:
                return await published(admin) == Publication(url=f"https://control.{namespace}.svc:443", ca=first.ca)

            await until(moved)
            assert accepted(serving, f"control.{namespace}.svc", first.ca)


@apiserver
@pytest.mark.parametrize(("resource", "verb"), RIGHTS)
async def test_every_right_is_needed(  # noqa: PLR0917 - fixtures and parameters
    api_server: ApiServer,
    admin: ApiClient,
    namespace: str,
    resource: str,
    verb: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rights = [right for right in RIGHTS if right != (resource, verb)]

    async def is_named() -> bool:
        return f'cannot {verb} resource "{resource}"' in caplog.text

    async with restricted(api_server, admin, namespace, rights) as client, empty_publication(admin):
        async with publication.certificate(client, settings(namespace)):
            await until(is_named)
        assert await published(admin) is None


@apiserver
async def test_a_mounted_certificate_is_published_with_its_authority(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"control.{namespace}.svc"
    authority = new_authority("control", NOW, Lifetimes())
    leaf = issue(authority, [name], NOW, Lifetimes())
    ca = pem.of_certificates([authority.certificate])
    config = settings(namespace, control_plane_folder=tmp_path)
    rights = [right for right in RIGHTS if right[0] == "configmaps"]
    async with restricted(api_server, admin, namespace, rights) as client:
        async with publication.certificate(client, config) as serving:
            assert not serving.ready
        (tmp_path / "tls.crt").write_bytes(pem.of_certificates([leaf.certificate]))
        (tmp_path / "tls.key").write_bytes(pem.of_key(leaf.key))
        (tmp_path / "ca.crt").write_bytes(ca)

        async def missing() -> bool:
            return "not found; new pods do not report to this operator" in caplog.text

        async with publication.certificate(client, config):
            await until(missing)
        async with empty_publication(admin):
            async with publication.certificate(client, config) as serving:
                first = await until(lambda: published(admin))
            assert first == Publication(url=f"https://{name}:8443", ca=ca.decode())
            assert accepted(serving, name, first.ca)
            (tmp_path / "ca.crt").write_bytes(ca * 10)

            async def refused() -> bool:
                return "at most 4096 fit into a pod" in caplog.text

            async with publication.certificate(client, config):
                await until(refused)
            assert await published(admin) == first
            (tmp_path / "ca.crt").unlink()

            async def public() -> bool:
                return await published(admin) == Publication(url=f"https://{name}:8443")

            async with publication.certificate(client, config):
                await until(public)


@apiserver
async def test_nothing_is_published_unless_it_is_switched_on(admin: ApiClient, namespace: str) -> None:
    config = OperatorConfig(pod_namespace=namespace, control_plane_secret=SECRET)
    async with empty_publication(admin):
        async with publication.certificate(admin, config) as serving:

            async def ready() -> bool:
                return serving.ready

            await until(ready)
            before = await admin.get(PUBLICATION)
        assert "data" not in before


def test_the_overlap_ends_before_the_leaf_and_the_authorities_fit_into_a_pod() -> None:
    assert timedelta() < OVERLAP < LIFETIMES.leaf_ahead
    made = [new_authority("x" * 63, NOW, LIFETIMES).certificate for _ in range(publication.PUBLISHED_AUTHORITIES)]
    address = publication.PublishedAddress("https://control", frozenset())
    change = address.publish({"metadata": {"resourceVersion": "7"}}, [*made, made[0]])
    assert change
    assert Publication.of(change["data"])
    assert address.published(change) == tuple(made)
