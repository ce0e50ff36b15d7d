"""What the API server is told of a capture: its whole status in guarded writes, and a few events."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api import names
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import (
    JSON_PATCH,
    ClusterError,
    Conflict,
    NotFound,
    RequestRejected,
    Unavailable,
    path_to,
)
from mldiagnostics_kube.retry import retry

if TYPE_CHECKING:
    from mldiagnostics_api.v1alpha1 import ConnectionStatus, ObjectMeta
    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

# For a moment after its start the API server has not read all roles; and one that was taken away may be given back.
_NOT_PERMITTED: Final = frozenset({401, 403})


class ObjectGone(Exception):
    """The object was deleted, made anew, or taken over by another process: nobody wants this status any more."""


class StatusWriter:
    """Writes about one object.

    The status is replaced whole, because one process at a time owns it: a write holds only if the object still has the
    same uid and the holder that this journal knows, which is none before the capture runs.
    """

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: OperatorMetrics,
        meta: ObjectMeta,
        *,
        me: str,
        holder: str | None,
        has_status: bool = False,
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._meta = meta
        self._me = me
        self._holder = holder
        self._has_status = has_status or holder is not None
        self._path = path_to(*CONNECTIONS.gvr, namespace=meta.namespace, name=meta.name)

    async def write(self, status: ConnectionStatus, *, until: float | None = None) -> None:
        """Replace the status, trying again while the API server is away, until `until` on the loop's clock.

        Raises Gone, Refused, or Unavailable after `until`.
        """
        body = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            await retry(lambda: self._attempt(body), on=(Unavailable, Conflict), until=until)
        except (NotFound, ObjectGone) as gone:
            self._telemetry.status_written("gone")
            raise ObjectGone(str(gone)) from gone
        except ClusterError:
            self._telemetry.status_written("failed")
            raise
        self._telemetry.status_written("written")
        self._has_status = True
        self._holder = status.holder or self._holder

    async def _attempt(self, body: dict[str, Any]) -> None:
        held = "/status/holder" if self._has_status else "/status"
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": self._meta.uid},
            {"op": "test", "path": held, "value": self._holder},  # null: there is none
            {"op": "add", "path": "/status", "value": body},
        ]
        try:
            await self._cluster.patch(f"{self._path}/status", patch, content_type=JSON_PATCH)
        except RequestRejected as refused:
            if refused.status in _NOT_PERMITTED:
                raise Unavailable(f"{refused}; has the operator its role?", status=refused.status) from refused
            if refused.status != 422:
                raise
            await self._explain(refused)

    async def _explain(self, refused: RequestRejected) -> None:
        """Find out which guard failed: the API server does not say. Returns only if the write is to be repeated."""
        found = await self._cluster.get(self._path)
        status = found.get("status")
        holder = (status or {}).get("holder")
        if found["metadata"]["uid"] != self._meta.uid:
            raise ObjectGone(f"{self._meta.namespace}/{self._meta.name} was deleted and made anew") from refused
        if holder == self._holder and self._has_status == (status is not None):
            raise refused
        if holder not in (self._holder, self._me):
            raise ObjectGone(f"{self._meta.namespace}/{self._meta.name} was taken over by {holder}") from refused
        # An earlier write of ours arrived although its answer was lost, or an earlier process said why it waited.
        self._holder, self._has_status = holder, status is not None
        raise Unavailable("the status is not another's; write it again")

    async def deleted(self) -> bool:
        """Ask whether the object does not exist any more; false as long as the API server cannot say."""
        until = asyncio.get_running_loop().time() + 30
        try:
            found = await retry(lambda: self._cluster.get(self._path), on=Unavailable, until=until)
        except NotFound:
            return True
        except ClusterError:
            return False
        return bool(found["metadata"]["uid"] != self._meta.uid)

    async def announce(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Put an event on the object; one that the API server does not take is logged and dropped."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        event = {
            "metadata": {"generateName": f"{self._meta.name[:50]}.", "namespace": self._meta.namespace},
            "involvedObject": {
                "apiVersion": CONNECTIONS.api_version,
                "kind": CONNECTIONS.kind,
                "name": self._meta.name,
                "namespace": self._meta.namespace,
                "uid": self._meta.uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:1024],
            "source": {"component": names.FIELD_MANAGER},
            "reportingComponent": names.FIELD_MANAGER,
            "reportingInstance": self._me[:128],
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        path = path_to("", "v1", "events", namespace=self._meta.namespace)
        until = asyncio.get_running_loop().time() + 30
        try:
            await retry(lambda: self._cluster.create(path, event), on=Unavailable, until=until)
        except ClusterError as failure:
            _log.warning("The event %s was dropped: %s", reason, failure)
