"""The API for files: alone, called as an API server calls it, and behind a real API server."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from cluster.certificates import make_certificates
from mldiagnostics_api.results import API_SERVICE, RESULTS_GROUP, RESULTS_VERSION
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.results.front_proxy import FrontProxy
from mldiagnostics_operator.results.server import ResultsServer
from mldiagnostics_operator.results.service import ResultsApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE_S = 120
SERVICE = "operator-api"
READ_FILES: dict[str, Any] = {"apiGroups": [RESULTS_GROUP], "resources": ["files"], "verbs": ["get", "list"]}
_SERVICES = path_to("apiregistration.k8s.io", "v1", "apiservices")


@asynccontextmanager
async def results_alone(volume: Path, pki: Path, *, client: str = "front-proxy") -> AsyncIterator[ApiClient]:
    """Serve the files of a volume while the block runs; yield a client with a certificate as an API server has it.

    Args:
        volume: The operator's volume.
        pki: Folder for certificates.
        client: Name of the client's certificate, see `make_certificates`.
    """
    files = make_certificates(pki, hosts=["127.0.0.1"])
    serving = ServingCertificate(utc_now)
    serving.load(files.certificate("apiserver").read_bytes(), files.key("apiserver").read_bytes())
    serving.context.verify_mode = ssl.CERT_REQUIRED
    serving.context.load_verify_locations(cafile=files.ca)
    server = ResultsServer(volume, FrontProxy(files.ca.read_text(), frozenset({"front-proxy-client"})))
    try:
        async with server.serving(0, serving.context) as port:
            certificate, key = files.certificate(client).read_bytes(), files.key(client).read_bytes()
            access = Credentials(
                f"https://127.0.0.1:{port}", fixed(""), files.ca.read_bytes(), certificate_pem=certificate, key_pem=key
            )
            connected = ApiClient(access)
            try:
                yield connected
            finally:
                await connected.aclose()
    finally:
        server.close()


@asynccontextmanager
async def results_served(
    admin: ApiClient, namespace: str, volume: Path, *, cluster: ApiClient | None = None
) -> AsyncIterator[ResultsApi]:
    """Serve the files of a volume through the API server while the block runs.

    Args:
        admin: Client that makes Service and registration, as the chart does.
        namespace: Namespace of the operator.
        volume: The operator's volume.
        cluster: Client of the operator; by default that of the administrator.
    """
    config = OperatorConfig(pod_namespace=namespace, control_plane_service=SERVICE, results_port=0, volume_root=volume)
    api = ResultsApi(cluster or admin, config, poll_s=0.05)
    work = asyncio.create_task(api.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            port = await api.port
            services = path_to("", "v1", "services", namespace=namespace)
            spec = {"type": "ExternalName", "externalName": "localhost"}
            await admin.create(services, {"metadata": {"name": SERVICE}, "spec": spec})
            await admin.create(_SERVICES, _registration(namespace, port))
            await _until_available(admin)
        yield api
    finally:
        work.cancel()
        await asyncio.wait({work})
        with suppress(NotFound):
            await admin.request("DELETE", f"{_SERVICES}/{API_SERVICE}")


def _registration(namespace: str, port: int) -> dict[str, Any]:
    return {
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": RESULTS_GROUP,
            "version": RESULTS_VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"name": SERVICE, "namespace": namespace, "port": port},
        },
    }


async def _until_available(admin: ApiClient) -> None:
    while True:
        conditions = (await admin.get(f"{_SERVICES}/{API_SERVICE}")).get("status", {}).get("conditions", ())
        if any(each["type"] == "Available" and each["status"] == "True" for each in conditions):
            return
        await asyncio.sleep(0.05)
