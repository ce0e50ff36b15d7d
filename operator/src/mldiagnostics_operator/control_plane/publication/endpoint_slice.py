"""The EndpointSlice of a Service without selector: it leads to the leader only."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import FIELD_MANAGER
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.process.retry import retry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client.api_client import ApiClient

_log: Final = logging.getLogger(__name__)
_GROUP: Final = ("discovery.k8s.io", "v1", "endpointslices")
REFRESH_S: Final = 60.0
"""The slice is written again this often: somebody may have deleted it."""


class EndpointSlice:
    """Leads a Service to this pod while it runs, and to nobody afterwards.

    All leaders write one object. The next one replaces it; the last one empties it only if no other has written it. The
    Service owns it, so that it is deleted with the Service.

    Args:
        cluster: Client of the API server.
        namespace: Namespace of the Service.
        service: Name of the Service.
        address: IP address of this pod.
        pod: Name and uid of this pod.
        ports: Port numbers by the names of the Service's ports.
    """

    def __init__(
        self,
        cluster: ApiClient,
        *,
        namespace: str,
        service: str,
        address: str,
        pod: tuple[str, str],
        ports: Mapping[str, int],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._service = service
        self._address = ipaddress.ip_address(address)
        self._pod = pod
        self._ports = ports
        self._owners: list[dict[str, str]] = []

    async def run(self) -> None:
        """Keep the slice until cancelled, then empty it."""
        try:
            while True:
                await retry(self._write, on=ClusterError)
                await asyncio.sleep(REFRESH_S)
        finally:
            with suppress(ClusterError, asyncio.CancelledError):
                await asyncio.shield(self._withdraw())

    @property
    def _path(self) -> str:
        # The address type of an object never changes, so each has its own.
        name = f"{self._service}-ipv{self._address.version}"
        return path_to(*_GROUP, namespace=self._namespace, name=name)

    async def _write(self) -> None:
        self._owners = [await self._owner()]
        body = self._body([self._endpoint()])
        try:
            present = await self._cluster.get(self._path)
        except NotFound:
            await self._cluster.create(self._path.rpartition("/")[0], body)
        else:
            if _content(present) == _content(body):
                return
            body["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
            await self._cluster.replace(self._path, body)
        _log.info(
            "Service %(service)s leads to this pod, %(address)s", {"service": self._service, "address": self._address}
        )

    async def _withdraw(self) -> None:
        """Empty the slice if it leads here, also after a write whose answer was not read."""
        with suppress(Conflict, NotFound):  # of the next leader already
            present = await self._cluster.get(self._path)
            if present.get("endpoints") == [self._endpoint()]:
                body = self._body([])
                body["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
                await self._cluster.replace(self._path, body)

    async def _owner(self) -> dict[str, str]:
        """Return the reference to the Service; raise NotFound if it does not exist."""
        service = await self._cluster.get(path_to("", "v1", "services", namespace=self._namespace, name=self._service))
        return {"apiVersion": "v1", "kind": "Service", "name": self._service, "uid": service["metadata"]["uid"]}

    def _endpoint(self) -> dict[str, Any]:
        name, uid = self._pod
        target = {"kind": "Pod", "namespace": self._namespace, "name": name, "uid": uid}
        return {"addresses": [str(self._address)], "conditions": {"ready": True}} | (
            {"targetRef": target} if uid else {}
        )

    def _body(self, endpoints: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": self._path.rpartition("/")[2],
                "namespace": self._namespace,
                "labels": {
                    "kubernetes.io/service-name": self._service,
                    "endpointslice.kubernetes.io/managed-by": FIELD_MANAGER,
                },
                "ownerReferences": self._owners,
            },
            "addressType": f"IPv{self._address.version}",
            "endpoints": endpoints,
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in sorted(self._ports.items())],
        }


def _content(item: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parts that this process decides."""
    return item.get("endpoints"), item.get("ports"), item["metadata"].get("ownerReferences")
