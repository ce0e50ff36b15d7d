"""Three replicas keep their certificates on a real API server, which calls them all the time."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from aiohttp import web
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, issued_by, new_authority
from mldiagnostics_kube.certificates.bundle import WebhookBundle
from mldiagnostics_kube.certificates.content import SecretContent
from mldiagnostics_kube.certificates.rotation import RotationRules
from mldiagnostics_kube.certificates.selfmanaged import CertificateObjects, RotationTiming, SelfManaged
from mldiagnostics_kube.certificates.serving import ServingCertificate
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.client.credentials import Credentials, fixed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cluster.envtest import ApiServer
    from cryptography.x509 import Certificate

pytestmark = pytest.mark.apiserver

RULES = RotationRules("webhook", frozenset({"localhost"}), settle=timedelta(seconds=5))
TIMING = RotationTiming(poll_s=0.1, retry_s=0.02)
MARK = "called"
DEADLINE_S = 120
CONFIGURATIONS = path_to("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")


def now() -> datetime:
    return datetime.now(UTC)


async def review(request: web.Request) -> web.Response:
    """Mark every pod; each call has its own handshake."""
    body = await request.json()
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {MARK: "true"}}]
    answer = {
        "uid": body["request"]["uid"],
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }
    response = web.json_response({"apiVersion": body["apiVersion"], "kind": body["kind"], "response": answer})
    response.force_close()
    return response


@dataclass
class Replicas:
    """Servers behind one address, each with a self-managed certificate, and the cluster that calls them."""

    cluster: ApiClient
    objects: CertificateObjects
    configuration: str
    port: int
    served: list[ServingCertificate] = field(default_factory=list)

    @property
    def secret_path(self) -> str:
        return path_to("", "v1", "secrets", namespace=self.objects.namespace, name=self.objects.secret)

    @property
    def configuration_path(self) -> str:
        return f"{CONFIGURATIONS}/{self.configuration}"

    async def configure(self, *trusted: Certificate) -> None:
        """Have the API server call the replicas for every pod of the namespace."""
        bundles = {"caBundle": base64.b64encode(pem.of_certificates(trusted)).decode()} if trusted else {}
        entries = [
            {
                "name": f"{name}.example.com",
                "clientConfig": {"url": f"https://localhost:{self.port}/", **bundles},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.objects.namespace}},
                "objectSelector": {"matchLabels": {"by": name}},
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": 10,
            }
            for name in ("first", "second")
        ]
        await self.cluster.request(
            "POST", CONFIGURATIONS, body={"metadata": {"name": self.configuration}, "webhooks": entries}
        )

    async def put_secret(self, content: SecretContent | None) -> None:
        body = {"metadata": {"name": self.objects.secret}, "data": content.data() if content else {}}
        await self.cluster.request("POST", self.secret_path.rpartition("/")[0], body=body)

    async def content(self) -> SecretContent:
        return SecretContent.of((await self.cluster.get(self.secret_path)).get("data", {}))

    async def leaf(self) -> Certificate | None:
        leaf = (await self.content()).leaf
        return leaf.certificate if leaf else None

    async def published(self) -> tuple[Certificate, ...]:
        return WebhookBundle(self.configuration).published(await self.cluster.get(self.configuration_path))

    async def is_marked(self, by: str = "first") -> bool:
        """Return whether a pod that is created now is marked."""
        pod = {
            "metadata": {"name": "pod", "labels": {"by": by}},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }
        path = path_to("", "v1", "pods", namespace=self.objects.namespace)
        made = await self.cluster.request("POST", path, query=[("dryRun", "All")], body=pod, timeout_s=60)
        return MARK in made["metadata"].get("annotations", {})

    async def all_agree(self) -> bool:
        """Return whether all serve the leaf of the Secret and every entry's pods are marked."""
        try:
            content = await self.content()
        except (ValueError, NotFound):
            return False
        shown = {serving._loaded for serving in self.served}
        return (
            content.leaf is not None
            and issued_by(content.leaf.certificate, content.authority.certificate)
            and shown == {(pem.of_certificates([content.leaf.certificate]), pem.of_key(content.leaf.key))}
            and all([await self.is_marked(by) for by in ("first", "second")])
        )

    async def until(self, holds: Callable[[], Any], goal: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await holds():  # noqa: ASYNC110 - polls the API server
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{goal}: not within {DEADLINE_S} s") from None

    @asynccontextmanager
    async def running(self, account: ApiClient | None = None) -> AsyncIterator[None]:
        """Run every replica's certificate loop, with the rights of the administrator or of an account."""
        cluster = account or self.cluster
        tasks = [
            asyncio.create_task(SelfManaged(cluster, self.objects, RULES, serving, clock=now, timing=TIMING).run())
            for serving in self.served
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)


@pytest.fixture
async def replicas(cluster: ApiClient, namespace: str) -> AsyncIterator[Replicas]:
    configuration = f"configuration-{uuid4().hex[:8]}"
    objects = CertificateObjects(namespace, "certificates", WebhookBundle(configuration))
    async with AsyncExitStack() as stack:
        listeners = [stack.enter_context(listener()) for _ in range(1)]
        port = listeners[0].getsockname()[1]
        listeners += [stack.enter_context(listener(port)) for _ in range(2)]
        made = Replicas(cluster, objects, configuration, port)
        for each in listeners:
            serving = ServingCertificate(now)
            app = web.Application()
            app.router.add_post("/", review)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.SockSite(runner, each, ssl_context=serving.context).start()
            made.served.append(serving)
        yield made
        with suppress(NotFound):
            await cluster.request("DELETE", made.configuration_path)


def listener(port: int = 0) -> socket.socket:
    """Listen on one port together: the kernel spreads connections, as a Service does."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made


async def test_replicas_agree_on_a_first_certificate(replicas: Replicas) -> None:
    await replicas.configure()
    async with replicas.running():
        await replicas.until(replicas.all_agree, "all serve one certificate that is trusted")
        content = await replicas.content()
        assert await replicas.published() == content.trusted == (content.authority.certificate,)


async def test_rotation_of_leaf_and_authority_loses_no_call(replicas: Replicas) -> None:
    """Rotate a leaf and its authority that expire soon: first a new leaf, then an authority, then its leaf."""
    lifetimes = Lifetimes()
    old = new_authority("webhook", now() - lifetimes.authority + timedelta(days=170), lifetimes)
    leaf = issue(old, RULES.dns_names, now() - lifetimes.leaf + timedelta(days=10), lifetimes)
    await replicas.put_secret(SecretContent(old, (), leaf))
    await replicas.configure(old.certificate)
    for serving in replicas.served:
        serving.load(*_texts(leaf))
    await replicas.until(replicas.is_marked, "the API server calls")
    issuers: set[str] = set()
    lost = 0

    async def load() -> None:
        nonlocal lost
        while True:
            lost += not await replicas.is_marked()

    async def rotated() -> bool:
        content = await replicas.content()
        if content.leaf:
            issuers.add(content.leaf.certificate.issuer.rfc4514_string())
        return content.authority.certificate != old.certificate and await replicas.all_agree()

    async with replicas.running():
        calls = [asyncio.create_task(load()) for _ in range(4)]
        try:
            await replicas.until(rotated, "leaf and authority are new")
        finally:
            for task in calls:
                task.cancel()
            await asyncio.wait(calls)
    assert all(task.cancelled() for task in calls)
    assert lost == 0
    content = await replicas.content()
    assert content.previous == (old.certificate,)
    assert await replicas.published() == content.trusted
    assert old.certificate.subject.rfc4514_string() in issuers
    assert len(issuers) == 2


@pytest.mark.parametrize(
    "data", [{"tls.crt": ""}, {"ca.key": "Z2FyYmFnZQ=="}, {"previous-ca.crt": "Z2FyYmFnZQ=="}, None]
)
async def test_a_damaged_secret_is_repaired_and_no_call_fails(
    replicas: Replicas, data: dict[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    await replicas.configure()
    async with replicas.running():
        await replicas.until(replicas.all_agree, "all serve one certificate that is trusted")
        before, authority = await replicas.leaf(), (await replicas.content()).authority.certificate
        if data is None:
            await replicas.cluster.request("DELETE", replicas.secret_path)
        else:
            merge = "application/merge-patch+json"
            await replicas.cluster.request("PATCH", replicas.secret_path, body={"data": data}, content_type=merge)

        async def renewed() -> bool:
            assert await replicas.is_marked()
            return await replicas.all_agree() and before != await replicas.leaf()

        await replicas.until(renewed, "a new certificate is served and trusted")
        assert authority in (await replicas.content()).trusted
    if data and "tls.crt" not in data:
        assert "replacing unusable content" in caplog.text


async def test_the_configuration_may_appear_late_be_deleted_and_lose_its_bundle(replicas: Replicas) -> None:
    async with replicas.running():

        async def ready() -> bool:
            return all(serving.ready for serving in replicas.served)

        await replicas.until(ready, "certificates are served")
        for _ in range(2):
            await replicas.configure()
            await replicas.until(replicas.all_agree, "it trusts the certificate")
            await replicas.cluster.request("DELETE", replicas.configuration_path)
        await replicas.configure(new_authority("stranger", now(), Lifetimes()).certificate)
        await replicas.until(replicas.all_agree, "it trusts the certificate again")


RIGHTS = {"secrets": ["get", "create", "patch"], "mutatingwebhookconfigurations": ["get", "patch"]}
REMOVED = [(resource, verb) for resource, verbs in RIGHTS.items() for verb in verbs]


@asynccontextmanager
async def account(server: ApiServer, replicas: Replicas, rights: dict[str, list[str]]) -> AsyncIterator[ApiClient]:
    """Connect as an account with these rights to one Secret and one configuration only."""
    objects, put = replicas.objects, replicas.cluster.request
    accounts = path_to("", "v1", "serviceaccounts", namespace=objects.namespace)
    await put("POST", accounts, body={"metadata": {"name": "webhook"}})
    token = await put("POST", f"{accounts}/webhook/token", body={"spec": {}})
    names = {"secrets": objects.secret, "mutatingwebhookconfigurations": replicas.configuration}
    rules = [
        {
            "apiGroups": ["", "admissionregistration.k8s.io"],
            "resources": [each],
            "resourceNames": [names[each]],
            "verbs": v,
        }
        for each, v in rights.items()
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await put("POST", f"{rbac}/clusterroles", body={"metadata": {"name": objects.namespace}, "rules": rules})
    binding = {
        "metadata": {"name": objects.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": objects.namespace},
        "subjects": [{"kind": "ServiceAccount", "namespace": objects.namespace, "name": "webhook"}],
    }
    await put("POST", f"{rbac}/clusterrolebindings", body=binding)
    ca_pem = await asyncio.to_thread(Path(server.ca).read_bytes)
    client = ApiClient(Credentials(server.url, fixed(token["status"]["token"]), ca_pem))
    try:
        yield client
    finally:
        await client.aclose()


async def test_rights_to_one_secret_and_one_configuration_are_enough(replicas: Replicas, api_server: ApiServer) -> None:
    await replicas.configure()
    async with account(api_server, replicas, RIGHTS) as client, replicas.running(client):
        await replicas.until(replicas.all_agree, "all serve one certificate that is trusted")


@pytest.mark.parametrize(("resource", "verb"), REMOVED)
async def test_every_right_is_needed(
    replicas: Replicas, api_server: ApiServer, resource: str, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without one of its rights a replica fails, and its log names the right."""
    await replicas.configure()
    rights = {name: [each for each in verbs if (name, each) != (resource, verb)] for name, verbs in RIGHTS.items()}

    async def is_named() -> bool:
        return f'cannot {verb} resource "{resource}"' in caplog.text

    async def is_stuck() -> bool:
        return (await is_named()) and not await replicas.all_agree()

    async with account(api_server, replicas, rights) as client, replicas.running(client):
        await replicas.until(is_stuck, "the missing right is named")


def _texts(pair: KeyPair) -> tuple[bytes, bytes]:
    return pem.of_certificates([pair.certificate]), pem.of_key(pair.key)
