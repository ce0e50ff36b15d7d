"""Writes of schedules: their status, the objects of captures, and events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.resources import CONNECTIONS, SCHEDULES
from mldiagnostics_kube.client.apiserver import JSON_PATCH, ClusterError, Conflict, NotFound, RequestRejected, path_to

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.schedules.projections import StoredSchedule, stored_schedule

if TYPE_CHECKING:
    from mldiagnostics_api.schedules.author import Author
    from mldiagnostics_api.schedules.history import PastCapture
    from mldiagnostics_api.v1alpha1.schedule import MLDiagnosticsSchedule, ScheduleStatus
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock


_log: Final = logging.getLogger(__name__)

_INVALID: Final = 422
"""Status of a JSON patch whose test fails."""


class ScheduleChanged(Exception):
    """The schedule is gone or has changed; the next look reads it again."""


class ScheduleWriter:
    """The requests that write.

    Args:
        cluster: Client of the API server.
        me: Name of this process in events.
        clock: Current time.
    """

    def __init__(self, cluster: ApiClient, *, me: str, clock: Clock) -> None:
        self._cluster, self._me, self._clock = cluster, me, clock

    async def write(self, stored: StoredSchedule, status: ScheduleStatus) -> StoredSchedule:
        """Replace the status of the version that was read; return the new version.

        Another leader, or a user who changes the object, makes the version another one, so that the record has no gap.

        Raises:
            ScheduleChanged: It is another version.
            ClusterError: The request failed.
        """
        meta = stored.body.metadata
        path = path_to(*SCHEDULES.gvr, namespace=meta.namespace, name=meta.name, sub="status")
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": stored.version},
            {"op": "add", "path": "/status", "value": status.model_dump(mode="json", by_alias=True, exclude_none=True)},
        ]
        try:
            body = await self._cluster.patch(path, patch, content_type=JSON_PATCH)
        except (NotFound, Conflict) as changed:
            raise ScheduleChanged(str(changed)) from changed
        except RequestRejected as rejection:
            if rejection.status != _INVALID:
                raise
            raise ScheduleChanged(str(rejection)) from rejection
        written = stored_schedule(body)
        if written is None:
            raise ScheduleChanged(f"{meta.namespace}/{meta.name} is being deleted")
        return written

    async def create(self, namespace: str, body: dict[str, Any]) -> RequestRejected | None:
        """Create a capture; return why it was rejected, None if it exists now.

        Raises:
            ClusterError: The request failed, and may succeed later.
        """
        try:
            await self._cluster.create(path_to(*CONNECTIONS.gvr, namespace=namespace), body)
        except Conflict:
            return None  # an earlier leader, or a request whose answer was lost
        except RequestRejected as rejection:
            return rejection
        return None

    async def may_capture(self, namespace: str, author: Author) -> bool:
        """Return whether a user may create captures; True if this account may not ask.

        Raises:
            ClusterError: The request failed, and may succeed later.
        """
        path = path_to("authorization.k8s.io", "v1", "localsubjectaccessreviews", namespace=namespace)
        try:
            answer = await self._cluster.create(path, author.access_review(namespace))
        except RequestRejected as rejection:
            _log.warning(
                "The rights of the author of a schedule in %(namespace)s cannot be read: %(error)s",
                {"namespace": namespace, "error": rejection},
            )
            return True
        return bool((answer.get("status") or {}).get("allowed"))

    async def delete(self, namespace: str, capture: PastCapture) -> None:
        """Delete a capture that leaves the history; if that fails it is tried again later."""
        path = path_to(*CONNECTIONS.gvr, namespace=namespace, name=capture.name)
        try:
            await self._cluster.delete(path, uid=capture.uid)
        except (NotFound, Conflict):
            return
        except ClusterError as error:
            _log.warning(
                "%(namespace)s/%(object)s has left its history and could not be deleted: %(error)s",
                {"namespace": namespace, "object": capture.name, "error": error},
            )

    async def announce(
        self, schedule: MLDiagnosticsSchedule, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Create an event about a schedule."""
        announcement = Announcement(reason, message, warning=warning)
        await announce(self._cluster, SCHEDULES, schedule.metadata, announcement, me=self._me, now=self._clock())
