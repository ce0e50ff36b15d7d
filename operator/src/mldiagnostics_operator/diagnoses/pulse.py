"""Deletes the traces of a pulse that its diagnosis does not need any more."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreError, StoreNotFound, StoreUnreachable
from mldiagnostics_api.captures.pulse import divided_traces

from mldiagnostics_operator.captures.record import owner

if TYPE_CHECKING:
    from mldiagnostics.findings import Diagnosis
    from mldiagnostics_api.captures.location import Location

    from mldiagnostics_operator.storage import LogDirectory, Storage


_log: Final = logging.getLogger(__name__)

DELETION_S: Final = 60.0
"""Time limit of the deletions in one log directory."""


class PulseTraces:
    """Traces of pulses.

    Args:
        storage: Opens log directories.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def reduce(
        self, location: Location, session: str, diagnosis: Diagnosis, *, uid: str
    ) -> dict[str, int] | None:
        """Delete traces after a diagnosis; return the sizes of the others by URL.

        A second call deletes what the first one left. Returns None if the traces could not be deleted, or if the
        session is not recorded as that of this capture: the status of the object may be written by others.

        Args:
            location: Log directory.
            session: Name of the session.
            diagnosis: Its diagnosis.
            uid: Uid of the capture.
        """
        directory = self._storage.directory(location)
        try:
            async with asyncio.timeout(DELETION_S):
                return await _reduce(directory, session, diagnosis, uid=uid)
        except TimeoutError:
            problem: StoreError = StoreUnreachable(f"{location}: did not answer within {DELETION_S:g} s")
        except (NotStored, StoreNotFound):
            return None
        except StoreError as error:
            problem = error
        _log.warning(
            "Traces of the pulse %(session)s in %(location)s could not be deleted: %(error)s",
            {"session": session, "location": location, "error": problem},
        )
        return None


async def _reduce(directory: LogDirectory, session: str, diagnosis: Diagnosis, *, uid: str) -> dict[str, int] | None:
    if owner(await directory.read(layout.capture_record_key(session))) != uid:
        return None
    sizes = {entry.key: entry.bytes for entry in await directory.list(layout.session_prefix(session))}
    kept, others = divided_traces(session, sizes, diagnosis.findings)
    for result in await asyncio.gather(*map(directory.delete, others), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
    return {str(directory.location.child(key)): sizes[key] for key in kept}
