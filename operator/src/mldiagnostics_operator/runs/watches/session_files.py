"""Adoption of the profiles in the storage of a run that nobody reported."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import MLDiagnosticsError, StoreNotFound
from mldiagnostics_api.runs.sessions import adopted_sessions

from mldiagnostics_operator.runs.run_directory import run_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.v1alpha1 import RunSession

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.runs.run_index import RunIndex
    from mldiagnostics_operator.storage import Storage

_log: Final = logging.getLogger(__name__)

ADOPTION_S: Final = 300.0
"""Pause between two listings of the profiles of runs: a bucket bills each listing."""
LIST_S: Final = 60.0
"""Time limit of a listing: a volume may hang."""
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

    async def run(self, runs: RunIndex, *, changed: Callable[[ObjectKey], None]) -> None:
        """List the storage of each run now and then, one after the other, until cancelled."""
        while True:
            await asyncio.sleep(ADOPTION_S)
            for run in runs.all:
                if run.run_id and not run.finished and run in runs:
                    run.stored_sessions = await self.sessions(run.meta.namespace, run.run_id, run.storage_location)
                    changed(run.key)

    async def sessions(self, namespace: str, run_id: str, location: str | None) -> list[RunSession]:
        """Return the sessions in the log directory of a run; empty if it cannot be read.

        Args:
            namespace: Namespace of the run.
            run_id: Id of the run.
            location: `spec.storageLocation`; None for the operator's default.
        """
        try:
            directory = run_directory(self._policy, namespace, run_id, location)
            if directory is None:
                return []
            async with asyncio.timeout(LIST_S):
                entries = await self._storage.directory(directory).list(layout.PROFILE_DIR, only=_OneTracePerSession())
        except StoreNotFound:
            return []
        except (MLDiagnosticsError, OSError, ValueError) as error:
            _log.info(
                "The profiles of run %(run)s in %(namespace)s cannot be listed: %(error)s",
                {"run": run_id, "namespace": namespace, "error": str(error) or f"no answer in {LIST_S:.0f} s"},
            )
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
