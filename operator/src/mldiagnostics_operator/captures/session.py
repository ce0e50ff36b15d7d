"""The files of one attempt: the record that claims the session, and the traces."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.capture.model import Delivery
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError, StoreNotFound
from mldiagnostics_api.location import Medium

from mldiagnostics_operator.captures import record
from mldiagnostics_operator.captures.outcomes import of_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.store import Stored
    from mldiagnostics_api.location import Location
    from mldiagnostics_api.plan import CapturePlan, PlannedTarget, SkippedTarget
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.storage import LogDirectory, Storage

_log: Final = logging.getLogger(__name__)


class SessionTaken(Exception):
    """Another capture has the session; the message names it."""


class Session:
    """The files of one attempt, in every log directory that the operator writes to."""

    def __init__(
        self, storage: Storage, connection: MLDiagnosticsConnection, plan: CapturePlan, versions: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._versions = versions
        self._key = layout.capture_record_key(plan.session)
        self._directories: dict[Location, LogDirectory] = {
            location: storage.directory(location) for location in plan.directories if location.medium is not Medium.POD
        }

    async def claim(self) -> None:
        """Write a record into every directory, so that no other capture gets the session.

        Raises SessionTaken, StoreError.
        """
        for location, directory in self._directories.items():
            with self._tolerated(location):
                await self._claim(directory, record.claim(self._connection, self._plan, location, self._versions))

    async def _claim(self, directory: LogDirectory, content: bytes) -> None:
        try:
            await directory.put(self._key, content)
        except AlreadyStored:
            with suppress(NotStored):
                owner = record.owner(await directory.read(self._key))
                if owner != self._connection.metadata.uid:
                    whose = f"the object with uid {owner}" if owner else "another writer"
                    raise SessionTaken(
                        f"session {self._plan.session} in {directory.location} belongs to {whose}; "
                        "give another sessionId or storageLocation"
                    ) from None
            await directory.put(self._key, content, replaces=True)

    async def put(self, target: PlannedTarget, trace: memoryview) -> Stored:
        """Store one trace. Raises StoreError."""
        return await self._directories[target.directory].put(layout.trace_key(self._plan.session, target.stem), trace)

    async def stored(self) -> list[TargetOutcome]:
        """List the traces in the store, also those of pods that have ended since.

        Raises StoreError.
        """
        files: dict[str, int] = {}
        for location, directory in self._directories.items():
            with self._tolerated(location), suppress(StoreNotFound):
                entries = await directory.list(layout.session_prefix(self._plan.session))
                files |= {f"{location}/{entry.key}": entry.bytes for entry in entries}
        chosen: list[PlannedTarget | SkippedTarget] = [*self._plan.targets, *self._plan.skipped]
        named = {self._file(target): target for target in chosen}
        return [of_file(target, file=file, size=files[file]) for file, target in named.items() if file in files]

    async def conclude(self, outcomes: Sequence[TargetOutcome]) -> None:
        """Rewrite the records with the outcome of every target. Raises StoreError."""
        for location, directory in self._directories.items():
            content = record.complete(self._connection, self._plan, location, outcomes, self._versions)
            with self._tolerated(location):
                await directory.put(self._key, content, replaces=True)

    async def drop(self, stored: Sequence[PlannedTarget]) -> None:
        """Delete the traces of these targets and the records.

        So a deleted capture leaves no file that claims success.
        """
        keys = [(target.directory, layout.trace_key(self._plan.session, target.stem)) for target in stored]
        keys += [(location, self._key) for location in self._directories]
        for location, key in keys:
            try:
                await self._directories[location].delete(key)
            except StoreError as error:
                _log.warning("%s/%s of a deleted capture could not be deleted: %s", location, key, error)

    def _file(self, target: PlannedTarget | SkippedTarget) -> str:
        stem = layout.file_stem(target.pod, target.local_rank)
        return f"{target.directory}/{layout.trace_key(self._plan.session, stem)}"

    @contextmanager
    def _tolerated(self, location: Location) -> Iterator[None]:
        """Suppress errors in a directory that only the pods need to write to."""
        try:
            yield
        except StoreError as error:
            if self._plan.delivery is not Delivery.WORKLOAD:
                raise
            _log.info("The operator cannot write to %s, only the pods do: %s", location, error)
