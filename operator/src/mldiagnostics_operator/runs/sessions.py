"""Adoption of the profiles in the storage of a run that nobody reported."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import MLDiagnosticsError, StoreNotFound
from mldiagnostics_api.location import Location, Medium
from mldiagnostics_api.run_sessions import adopted_sessions

if TYPE_CHECKING:
    from mldiagnostics_api.policy import Policy
    from mldiagnostics_api.v1alpha1 import RunSession

    from mldiagnostics_operator.storage import Storage

_log: Final = logging.getLogger(__name__)

MAX_ADOPTED: Final = 256
"""Sessions of a run that one listing returns; the status keeps the newest 32."""


class SessionFiles:
    """Lists the sessions in the storage of runs, never where a process reports it.

    Args:
        storage: Opens log directories.
        policy: The default storage, and the storage that each namespace may use.
    """

    def __init__(self, storage: Storage, policy: Policy) -> None:
        self._storage = storage
        self._policy = policy

    async def sessions(self, namespace: str, run_id: str, location: str | None) -> list[RunSession]:
        """Return the sessions in the log directory of a run; empty if it cannot be read.

        Args:
            namespace: Namespace of the run.
            run_id: Id of the run.
            location: `spec.storageLocation`; None for the operator's default.
        """
        try:
            root = Location.parse(location) if location else self._policy.default_storage
            if root is None or root.medium is Medium.POD:
                return []
            if location and not self._policy.may_store(root, namespace):
                return []
            directory = Location.parse(layout.run_directory(str(root), run_id=run_id, namespace="", workload=""))
            entries = await self._storage.directory(directory).list(layout.PROFILE_DIR, only=_OneTracePerSession())
        except StoreNotFound:
            return []
        except (MLDiagnosticsError, ValueError) as error:
            _log.info("The profiles of run %s in %s cannot be listed: %s", run_id, namespace, error)
            return []
        return adopted_sessions([(entry.key, entry.modified) for entry in entries], str(directory))


class _OneTracePerSession:
    """A filter of keys: a run of 2000 hosts has 2000 traces in each session."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __contains__(self, key: object) -> bool:
        session = layout.session_of(str(key))
        if session is None or session in self._seen or len(self._seen) >= MAX_ADOPTED:
            return False
        self._seen.add(session)
        return True
