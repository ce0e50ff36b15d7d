"""Captures as MLDiagnosticsConnections, made with the rights of a client."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.captures.capture_object import CaptureStatus, manifest
from mldiagnostics_api.names import REQUESTED_BY_ANNOTATION
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound
from mldiagnostics_kube.client.failures import failure_of
from mldiagnostics_kube.installation.captures import cancel_capture, path_of_capture
from typing_extensions import override

from mldiagnostics_view.captures.captures import Captures, CaptureUnknown
from mldiagnostics_view.captures.creation import create_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mldiagnostics_api.ranges import Ranges
    from mldiagnostics_kube.client.api_client import ApiClient


class ClusterCaptures(Captures):
    """Captures of MLRuns; as `Captures` says.

    Args:
        client: Client whose account makes the objects.
        cluster: The cluster in messages.
    """

    def __init__(self, client: ApiClient, *, cluster: str) -> None:
        self._client, self._cluster = client, cluster

    @override
    async def obstacle(self, key: str) -> str | None:
        return None  # the API server decides about the object

    @override
    async def create(
        self, key: str, *, order_id: str, ranks: Ranges | None, milliseconds: int, requester: str = ""
    ) -> CaptureStatus:
        namespace, _, run = key.partition(":")
        target = {"runRef": {"name": run}} | ({} if ranks is None else {"ranks": str(ranks)})
        trigger = {"target": target, "durationMilliseconds": milliseconds}
        body = manifest(trigger, label=run, order_id=order_id)
        if requester:
            body["metadata"]["annotations"] = {REQUESTED_BY_ANNOTATION: requester}
        return CaptureStatus.of(await create_once(self._client, namespace, body, cluster=self._cluster))

    @override
    async def status(self, key: str, name: str) -> CaptureStatus:
        namespace, _, run = key.partition(":")
        with self._failures():
            try:
                body = await self._client.get(path_of_capture(namespace, name))
            except NotFound as error:
                raise CaptureUnknown from error
        if _run_of(body) != run:
            raise CaptureUnknown
        return CaptureStatus.of(body)

    @override
    async def cancel(self, key: str, name: str) -> CaptureStatus:
        status = await self.status(key, name)
        if status.is_complete:
            return status
        with self._failures():
            return CaptureStatus.of(await cancel_capture(self._client, status.namespace, name))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except ClusterError as error:
            raise failure_of(error, cluster=self._cluster) from error


def _run_of(body: Mapping[str, Any]) -> str | None:
    """Return the MLRun that a capture names."""
    target = body["spec"]["triggerCapture"].get("target") or {}
    name: str | None = (target.get("runRef") or {}).get("name")
    return name
