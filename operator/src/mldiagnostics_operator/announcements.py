"""Events about custom resources, as `kubectl describe` shows them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics.text.terminal import printable
from mldiagnostics_api import names
from mldiagnostics_kube.client.apiserver import ClusterError, NamespaceTerminating, Unavailable, path_to
from mldiagnostics_kube.process.retry import retry

if TYPE_CHECKING:
    from datetime import datetime

    from mldiagnostics_api.resources import Resource
    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient

_log: Final = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30.0
_MESSAGE_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class Announcement:
    """Reason and message of an event."""

    reason: str
    message: str
    warning: bool = False


async def announce(
    cluster: ApiClient, resource: Resource, meta: ObjectMeta, announcement: Announcement, *, me: str, now: datetime
) -> None:
    """Create an event about an object; if that fails it is logged and dropped.

    Args:
        cluster: Client of the API server.
        resource: Resource of the object.
        meta: Metadata of the object.
        announcement: Reason and message.
        me: Name of this process.
        now: Current time in UTC.
    """
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    event = {
        "metadata": {"generateName": f"{meta.name[:50]}.", "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
        },
        "type": "Warning" if announcement.warning else "Normal",
        "reason": announcement.reason,
        "message": printable(announcement.message)[:_MESSAGE_CHARACTERS],
        "source": {"component": names.FIELD_MANAGER},
        "reportingComponent": names.FIELD_MANAGER,
        "reportingInstance": me[:128],
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    path = path_to("", "v1", "events", namespace=meta.namespace)
    until = asyncio.get_running_loop().time() + _TIMEOUT_S
    try:
        await retry(lambda: cluster.create(path, event), on=Unavailable, until=until)
    except NamespaceTerminating as error:  # the namespace takes the object along
        _log.debug("The event %(reason)s was dropped: %(error)s", {"reason": announcement.reason, "error": error})
    except ClusterError as error:
        _log.warning("The event %(reason)s was dropped: %(error)s", {"reason": announcement.reason, "error": error})
