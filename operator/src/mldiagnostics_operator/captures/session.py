"""The files of one attempt: the record that claims the session, and the traces."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics import layout
from mldiagnostics.capture.model import Delivery
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError, StoreNotFound, StoreUnreachable
from mldiagnostics_api.captures.location import Medium

from mldiagnostics_operator.captures import record
from mldiagnostics_operator.captures.outcomes import of_file

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence

    from mldiagnostics.store import Stored
    from mldiagnostics_api.captures.location import Location
    from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget, SkippedTarget
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.storage import LogDirectory, Storage

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
        self._uid = connection.metadata.uid
        self._key = layout.capture_record_key(plan.session)
        self._writes: set[asyncio.Task[Stored]] = set()
        self._directories: dict[Location, LogDirectory] = {
            location: storage.directory(location) for location in plan.directories if location.medium is not Medium.POD
        }

    async def claim(self) -> None:
        """Write a record into every directory, so that no other capture gets the session.

        Raises SessionTaken, StoreError.
        """
        for location, directory in self._directories.items():
            with self._tolerated(location):
                await self._write(directory, record.claim(self._connection, self._plan, location, self._versions))

    async def _write(self, directory: LogDirectory, content: bytes) -> None:
        """Write the record, in the place of an earlier one of this capture only."""
        try:
            await self._finished(directory.put(self._key, content, replaces=self._owns))
        except AlreadyStored:
            try:
                owner = record.owner(await directory.read(self._key))
            except NotStored:
                owner = self._uid  # deleted meanwhile
            if owner == self._uid:
                raise StoreUnreachable(f"{directory.location.child(self._key)}: changed meanwhile; try again") from None
            whose = f"the object with uid {owner}" if owner else "another writer"
            raise SessionTaken(
                f"session {self._plan.session} in {directory.location} belongs to {whose}; "
                "set another sessionId or storageLocation"
            ) from None

    async def _has_record(self, location: Location, directory: LogDirectory) -> bool:
        with self._tolerated(location), suppress(NotStored, StoreNotFound):
            return self._owns(await directory.read(self._key))
        return False

    def _owns(self, head: bytes) -> bool:
        return record.owner(head) == self._uid

    async def put(self, target: PlannedTarget, trace: memoryview) -> Stored:
        """Store one trace. Raises StoreError."""
        return await self._directories[target.directory].put(layout.trace_key(self._plan.session, target.stem), trace)

    async def stored(self) -> list[TargetOutcome] | None:
        """List the traces in the store, also those of pods that have ended since.

        None if a directory has no record of this capture. Raises StoreError.
        """
        if not self._directories:
            return None
        chosen: list[PlannedTarget | SkippedTarget] = [*self._plan.targets, *self._plan.skipped]
        keys = {self._trace_key(target) for target in chosen}
        files: dict[str, int] = {}
        for location, directory in self._directories.items():
            if not await self._has_record(location, directory):
                return None
            entries = await directory.list(layout.session_prefix(self._plan.session), only=keys)
            files |= {f"{location}/{entry.key}": entry.bytes for entry in entries}
        named = {f"{target.directory}/{self._trace_key(target)}": target for target in chosen}
        return [of_file(target, file=file, size=files[file]) for file, target in named.items() if file in files]

    async def conclude(self, outcomes: Sequence[TargetOutcome]) -> None:
        """Rewrite the records with the outcome of every target.

        Raises SessionTaken, StoreError.
        """
        for location, directory in self._directories.items():
            content = record.complete(self._connection, self._plan, location, outcomes, self._versions)
            with self._tolerated(location):
                await self._write(directory, content)

    async def drop(self, stored: Collection[PlannedTarget]) -> None:
        """Delete the traces of these targets and the records.

        So no file of a deleted capture claims success. Nothing is deleted in a directory whose record is not this
        capture's: its object only named the session.
        """
        await asyncio.gather(*self._writes, return_exceptions=True)
        for location, directory in self._directories.items():
            here = [target for target in stored if target.directory == location]
            try:
                await self._drop(directory, here)
            except StoreError as error:
                _log.warning(
                    "The files of a deleted capture in %(location)s could not be deleted: %(error)s",
                    {"location": location, "error": error},
                )

    async def _drop(self, directory: LogDirectory, stored: Sequence[PlannedTarget]) -> None:
        try:
            if not self._owns(await directory.read(self._key)):
                return
        except NotStored:
            return
        for target in stored:
            await directory.delete(layout.trace_key(self._plan.session, target.stem))
        await directory.delete(self._key, only_if=self._owns)

    async def _finished(self, write: Coroutine[Any, Any, Stored]) -> None:
        """Await a write; if that is cancelled the write goes on, and `drop` waits for it."""
        task = asyncio.ensure_future(write)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)

    def _trace_key(self, target: PlannedTarget | SkippedTarget) -> str:
        return layout.trace_key(self._plan.session, layout.file_stem(target.pod, target.local_rank))

    @contextmanager
    def _tolerated(self, location: Location) -> Iterator[None]:
        """Suppress errors in a directory that only the pods need to write to."""
        try:
            yield
        except StoreError as error:
            if self._plan.delivery is not Delivery.WORKLOAD:
                raise
            _log.info(
                "The operator cannot write to %(location)s, only the pods do: %(error)s",
                {"location": location, "error": error},
            )
