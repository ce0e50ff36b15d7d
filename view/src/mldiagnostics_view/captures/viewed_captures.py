"""Captures with the rights of a viewer, whose objects the server makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.failures import ClusterFailure
from typing_extensions import override

from mldiagnostics_view.authorization import GET_RUN, Right
from mldiagnostics_view.captures.captures import Captures
from mldiagnostics_view.sources.source import RunUnknown, namespace_in

if TYPE_CHECKING:
    from mldiagnostics_api.captures.capture_object import CaptureStatus
    from mldiagnostics_api.ranges import Ranges

    from mldiagnostics_view.authorization import Access


CREATE: Final = Right("create", CONNECTIONS.group, CONNECTIONS.plural)
GET: Final = Right("get", CONNECTIONS.group, CONNECTIONS.plural)
PATCH: Final = Right("patch", CONNECTIONS.group, CONNECTIONS.plural)
_FORBIDDEN: Final = 403


class ViewedCaptures(Captures):
    """Captures that the viewer could make with kubectl; as `Captures` says.

    A run that the viewer may not see does not differ from one that does not exist.
    """

    def __init__(self, captures: Captures, access: Access) -> None:
        self._captures, self._access = captures, access

    @override
    async def obstacle(self, key: str) -> str | None:
        reason = await self._captures.obstacle(key)
        if reason is not None:
            return reason
        return None if await self._access.allows(CREATE, namespace_in(key)) else _missing(CREATE, key)

    @override
    async def create(
        self, key: str, *, order_id: str, ranks: Ranges | None, milliseconds: int, requester: str = ""
    ) -> CaptureStatus:
        await self._check(CREATE, key)
        return await self._captures.create(
            key, order_id=order_id, ranks=ranks, milliseconds=milliseconds, requester=self._access.viewer
        )

    @override
    async def status(self, key: str, name: str) -> CaptureStatus:
        await self._check(GET, key)
        return await self._captures.status(key, name)

    @override
    async def cancel(self, key: str, name: str) -> CaptureStatus:
        await self._check(PATCH, key)
        return await self._captures.cancel(key, name)

    async def _check(self, right: Right, key: str) -> None:
        namespace = namespace_in(key)
        if not namespace or not await self._access.allows(GET_RUN, namespace):
            raise RunUnknown
        if not await self._access.allows(right, namespace):
            raise ClusterFailure(_missing(right, key), status=_FORBIDDEN)


def _missing(right: Right, key: str) -> str:
    return (
        f"namespace '{namespace_in(key)}': you may not {right.verb} {right.resource}.{right.group} there; ask the "
        "administrator for this right"
    )
