"""The ConfigMap of the control plane on a real API server, as the operator's chart makes it."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.client.credentials import Credentials, fixed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from cluster.envtest import ApiServer

Object = dict[str, Any]

CONFIG_MAPS = path_to("", "v1", "configmaps", namespace=PUBLICATION_NAMESPACE)
PUBLICATION = f"{CONFIG_MAPS}/{PUBLICATION_NAME}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@asynccontextmanager
async def empty_publication(cluster: ApiClient) -> AsyncIterator[None]:
    """Create the ConfigMap without data; it is deleted after the block."""
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": PUBLICATION_NAME}})
    try:
        yield
    finally:
        await remove_publication(cluster)


async def remove_publication(cluster: ApiClient) -> None:
    """Delete the ConfigMap, if it is there."""
    with suppress(NotFound):
        await cluster.request("DELETE", PUBLICATION)


@asynccontextmanager
async def account(
    server: ApiServer, cluster: ApiClient, namespace: str, rules: Iterable[tuple[str, Object]] = ()
) -> AsyncIterator[ApiClient]:
    """Connect as a new service account of a namespace with these rules, each with the namespace where it applies."""
    accounts = path_to("", "v1", "serviceaccounts", namespace=namespace)
    name = (await cluster.create(accounts, {"metadata": {"generateName": "account-"}}))["metadata"]["name"]
    token = await cluster.create(f"{accounts}/{name}/token", {"spec": {}})
    for number, (where, rule) in enumerate(rules):
        metadata = {"name": f"{namespace}-{name}-{number}"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]}
        subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]
        await cluster.create(f"{RBAC}/namespaces/{where}/roles", {"metadata": metadata, "rules": [rule]})
        binding = {"metadata": metadata, "roleRef": role, "subjects": subjects}
        await cluster.create(f"{RBAC}/namespaces/{where}/rolebindings", binding)
    ca_pem = Path(server.ca).read_bytes()  # noqa: ASYNC240 - a small file of the test
    client = ApiClient(Credentials(server.url, fixed(token["status"]["token"]), ca_pem))
    try:
        yield client
    finally:
        await client.aclose()
