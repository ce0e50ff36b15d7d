"""Deletes the files of a capture that leaves the history of its schedule."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreNotFound, StoreUnreachable
from mldiagnostics_api.captures.location import Location, Medium

from mldiagnostics_operator.captures.record import owner

if TYPE_CHECKING:
    from mldiagnostics_operator.schedules.projections import AutomaticCapture
    from mldiagnostics_operator.storage import Storage

DELETION_S: Final = 60.0
"""Time limit of one deletion."""


class SessionArtifacts:
    """Deletes the files of sessions.

    Args:
        storage: Opens directories.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def delete(self, capture: AutomaticCapture) -> int:
        """Delete the files of a capture; return their number.

        Only a session whose record names the capture by its uid is deleted: the status of the object may be written by
        others. The record goes last, so that another call can finish the work of one that failed. No link is followed.

        Raises:
            StoreError: The storage does not work, or refuses.
        """
        try:
            location = Location.parse(capture.output)
        except ValueError:
            return 0  # it stored nothing
        if location.medium is Medium.POD or not capture.session:
            return 0
        try:
            async with asyncio.timeout(DELETION_S):
                return await self._delete(location, capture)
        except TimeoutError:
            raise StoreUnreachable(f"{location}: did not answer within {DELETION_S:g} s; check the storage") from None

    async def _delete(self, location: Location, capture: AutomaticCapture) -> int:
        try:
            record = await self._storage.directory(location).read(layout.capture_record_key(capture.session))
        except (NotStored, StoreNotFound):
            return 0
        if owner(record) != capture.uid:
            return 0
        session = self._storage.directory(location.child(*layout.session_prefix(capture.session).split("/")))
        return await session.delete_all(keep=[layout.CAPTURE_RECORD]) + await session.delete_all()
