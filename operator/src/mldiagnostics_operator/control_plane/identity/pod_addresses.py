"""The pod that has an address, for clients that cannot send a token."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_operator.control_plane.identity.lookups import Overloaded
from mldiagnostics_operator.control_plane.limits import ADDRESS_CACHE_S, MAX_ADDRESSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.control_plane.identity.lookups import Lookups


class PodAddresses:
    """Finds pods by their address; pods on the network of their node are never found.

    Args:
        cluster: Client of the API server.
        lookups: Turns at look-ups.
        namespaces: Namespaces to search; empty for all.
        clock: Unix time.
    """

    def __init__(
        self, cluster: ApiClient, lookups: Lookups, namespaces: Sequence[str], clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._lookups = lookups
        self._namespaces: Sequence[str | None] = namespaces or (None,)
        self._clock = clock
        self._pods: OrderedDict[str, tuple[float, Mapping[str, Any] | None]] = OrderedDict()

    async def pod(self, address: str) -> Mapping[str, Any] | None:
        """Return the one running pod with an address, its metadata only, or None.

        Raises:
            Overloaded: The API server does not answer, or too many wait.
        """
        ip = _canonical(address)
        if ip is None:
            return None
        known = self._pods.get(ip)
        if known and self._clock() < known[0]:
            return known[1]
        async with self._lookups.turn(ip, "address"):
            try:
                pods = await self._pods_with(ip, cached=True) or await self._pods_with(ip, cached=False)
            except ClusterError as error:
                raise Overloaded(f"the pod with address {ip} cannot be looked up: {error}") from error
        pod = pods[0] if len(pods) == 1 else None
        self._pods[ip] = self._clock() + ADDRESS_CACHE_S, pod
        if len(self._pods) > MAX_ADDRESSES:
            self._pods.popitem(last=False)
        return pod

    async def _pods_with(self, ip: str, *, cached: bool) -> list[Mapping[str, Any]]:
        """Return the running pods with an address; usually one."""
        selector = f"status.podIP={ip},spec.hostNetwork=false,status.phase=Running"
        pods: list[Mapping[str, Any]] = []
        for namespace in self._namespaces:
            path = path_to("", "v1", "pods", namespace=namespace)
            pods += await self._cluster.items(path, dict, fields=selector, metadata_only=True, cached=cached, most=2)
        return pods


def _canonical(address: str) -> str | None:
    """Return an address as Kubernetes writes it; None for one that a pod cannot have."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(ip, "ipv4_mapped", None)
    ip = mapped or ip
    return None if ip.is_loopback or ip.is_link_local or ip.is_unspecified else str(ip)
