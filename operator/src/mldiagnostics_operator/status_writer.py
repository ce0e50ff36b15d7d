"""Guarded writes of an object's status, and its events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_kube.client.apiserver import (
    JSON_PATCH,
    NOT_PERMITTED,
    ClusterError,
    Conflict,
    NotFound,
    RequestRejected,
    Unavailable,
    path_to,
)
from mldiagnostics_kube.process.retry import retry
from pydantic import BaseModel

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.coalescer import Coalescer

if TYPE_CHECKING:
    from mldiagnostics_api.resources import Resource
    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

UPDATE_INTERVAL_S: Final = 5.0
_TIMEOUT_S: Final = 30.0


class ObjectGone(Exception):
    """The object was deleted, recreated or taken over: do not write its status."""


class StatusWriter:
    """Writes the status and the events of one object.

    The object is of any resource whose status names its `holder`.

    One process at a time owns the status, so it is replaced whole. A write is accepted only if the object still has the
    same uid and the holder that this writer knows; before the work starts there is no holder.

    `write` sends at once and is awaited. `put` hands a status to `send_updates`, which sends at most one per interval
    in which the phase stays the same.
    """

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: OperatorMetrics,
        resource: Resource,
        meta: ObjectMeta,
        *,
        me: str,
        holder: str | None,
        clock: Clock,
        has_status: bool = False,
        interval_s: float = UPDATE_INTERVAL_S,
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._resource = resource
        self._meta = meta
        self._clock = clock
        self._me = me
        self._holder = holder
        self._has_status = has_status or holder is not None
        self._phase: str | None = None
        self._updates = Coalescer[Callable[[], BaseModel]](interval_s)
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._path = path_to(*resource.gvr, namespace=meta.namespace, name=meta.name)

    async def write(self, status: BaseModel, *, until: float | None = None) -> None:
        """Replace the status; retry while the API server is not available.

        The last try is at `until` on the loop's clock; None retries for ever. The write supersedes the statuses that
        were put and not sent yet.

        Raises ObjectGone, RequestRejected, or Unavailable after `until`.
        """
        self._updates.clear()
        self._phase = getattr(status, "phase", None)
        async with self._writing:
            await self._write(status, until)

    def put(self, build: Callable[[], BaseModel], *, phase: str, within_s: float = UPDATE_INTERVAL_S) -> None:
        """Send a status within seconds, or at once if the phase has changed.

        `build` is called when the status is sent, so that many changes cost one status. A later `put` replaces an
        earlier one that was not sent yet.
        """
        due_s = within_s if phase == self._phase else 0
        self._updates.put(build, now=asyncio.get_running_loop().time(), within_s=due_s)
        self._phase = phase
        self._changed.set()

    async def send_updates(self) -> None:
        """Send the statuses that are put, until cancelled.

        A status that cannot be sent now is sent later. Raises ObjectGone.
        """
        while True:
            self._changed.clear()
            await self._send_due_update()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._updates.due_at):
                    await self._changed.wait()

    async def _send_due_update(self) -> None:
        clock = asyncio.get_running_loop().time
        async with self._writing:
            build = self._updates.take(now=clock())
            if build is None:
                return
            try:
                await self._write(build(), until=clock())
            except Unavailable:
                self._updates.put_back(now=clock())
            except ClusterError as error:
                _log.warning("The API server rejected an update of the status: %(error)s", {"error": error})

    async def _write(self, status: BaseModel, until: float | None) -> None:
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
        self._holder = body.get("holder") or self._holder

    async def _attempt(self, body: dict[str, Any]) -> None:
        held = "/status/holder" if self._has_status else "/status"
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": self._meta.uid},
            {"op": "test", "path": held, "value": self._holder},  # null: there is none
            {"op": "add", "path": "/status", "value": body},
        ]
        try:
            await self._cluster.patch(f"{self._path}/status", patch, content_type=JSON_PATCH)
        except RequestRejected as rejection:
            # Right after its start the API server may not know all roles; and a removed role may be restored.
            if rejection.status in NOT_PERMITTED:
                raise Unavailable(
                    f"{rejection}; does the operator have its role?", status=rejection.status
                ) from rejection
            if rejection.status != 422:
                raise
            await self._explain(rejection)

    async def _explain(self, rejection: RequestRejected) -> None:
        """Raise the reason for a rejected write, which the API server does not name.

        Raises Unavailable if the write is to be repeated.
        """
        current = await self._cluster.get(self._path)
        status = current.get("status")
        holder = (status or {}).get("holder")
        if current["metadata"]["uid"] != self._meta.uid:
            raise ObjectGone(f"{self._meta.namespace}/{self._meta.name} was deleted and recreated") from rejection
        if holder == self._holder and self._has_status == (status is not None):
            raise rejection
        if holder not in (self._holder, self._me):
            raise ObjectGone(f"{self._meta.namespace}/{self._meta.name} was taken over by {holder}") from rejection
        # An earlier write of ours arrived although its answer was lost, or an earlier process reported why it waited.
        self._holder, self._has_status = holder, status is not None
        raise Unavailable("the status was changed by this process or before the work started; writing it again")

    async def is_deleted(self) -> bool:
        """Return whether the object was deleted; False if the API server is not available."""
        until = asyncio.get_running_loop().time() + _TIMEOUT_S
        try:
            current = await retry(lambda: self._cluster.get(self._path), on=Unavailable, until=until)
        except NotFound:
            return True
        except ClusterError:
            return False
        return bool(current["metadata"]["uid"] != self._meta.uid)

    async def announce(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Create an event about the object; if that fails it is logged and dropped."""
        await announce(
            self._cluster,
            self._resource,
            self._meta,
            Announcement(reason, message, warning=warning),
            me=self._me,
            now=self._clock(),
        )
