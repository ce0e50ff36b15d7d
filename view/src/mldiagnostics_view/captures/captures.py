"""The interface of captures, and that of places that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from mldiagnostics_kube.client.failures import ClusterFailure
from typing_extensions import override

if TYPE_CHECKING:
    from mldiagnostics_api.captures.capture_object import CaptureStatus
    from mldiagnostics_api.ranges import Ranges


_FORBIDDEN = 403


class CaptureUnknown(Exception):
    """A run has no capture with a name."""


class Captures(Protocol):
    """Captures of the runs of one source, by the key of the run.

    Methods raise `ClusterFailure` if the cluster rejects the request or does not respond.
    """

    async def obstacle(self, key: str) -> str | None:
        """Return why the viewer cannot capture, for people.

        Empty without a reason, None if they can.
        """

    async def create(
        self, key: str, *, order_id: str, ranks: Ranges | None, milliseconds: int, requester: str = ""
    ) -> CaptureStatus:
        """Return the capture of an order.

        It is a new one, unless an earlier attempt has created it.

        Args:
            key: The run.
            order_id: Stays the same if the order is sent again.
            ranks: Ranks to capture; None for all.
            milliseconds: Duration.
            requester: The viewer, if the object is not made with their own credentials.

        Raises:
            ClusterFailure: The message says whether the capture may have been created.
        """

    async def status(self, key: str, name: str) -> CaptureStatus:
        """Return the status of a capture of a run. Raises `CaptureUnknown`."""

    async def cancel(self, key: str, name: str) -> CaptureStatus:
        """Stop a capture of a run; recorded traces are stored.

        Raises `CaptureUnknown`.
        """


class NoCaptures(Captures):
    """No captures, for a reason; empty where nobody expects them."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @override
    async def obstacle(self, key: str) -> str | None:
        return self._reason

    @override
    async def create(
        self, key: str, *, order_id: str, ranks: Ranges | None, milliseconds: int, requester: str = ""
    ) -> CaptureStatus:
        self._reject()

    @override
    async def status(self, key: str, name: str) -> CaptureStatus:
        self._reject()

    @override
    async def cancel(self, key: str, name: str) -> CaptureStatus:
        self._reject()

    def _reject(self) -> NoReturn:
        reason = self._reason or "This source has no cluster; use `mldiag capture`."
        raise ClusterFailure(reason, status=_FORBIDDEN)
