"""The work on one schedule: its record, its captures and its history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import StoreError, StoreUnreachable
from mldiagnostics_api.names import AUTHOR_ANNOTATION, ScheduleReason
from mldiagnostics_api.schedules.author import Author
from mldiagnostics_api.schedules.record import Readiness, wanted_of
from mldiagnostics_api.schedules.slots import LATEST_S
from mldiagnostics_api.schedules.template import capture_body
from mldiagnostics_kube.client.apiserver import NOT_PERMITTED

from mldiagnostics_operator.request_retry import FORBIDDEN_S
from mldiagnostics_operator.schedules.schedule_step import ScheduleMemory, ScheduleStep, advance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mldiagnostics_api.schedules.budget import BudgetLimits
    from mldiagnostics_api.schedules.history import PastCapture
    from mldiagnostics_api.schedules.run_readings import RunReadings
    from mldiagnostics_api.v1alpha1.schedule import ScheduledCapture, ScheduleStatus

    from mldiagnostics_operator.schedules.artifacts import SessionArtifacts
    from mldiagnostics_operator.schedules.projections import ActiveRun, AutomaticCapture, StoredSchedule
    from mldiagnostics_operator.schedules.writer import ScheduleWriter

FILES_S: Final = 600.0
"""Files that could not be deleted are tried again after so long."""
EVENT_S: Final = 600.0
"""An event about a limit is repeated after so long."""


class ScheduleWork:
    """One schedule in one leadership.

    Args:
        writer: Writes to the API server.
        artifacts: Deletes files.
        policy: The administrator's limits.
        counted: Called with the cause of each capture, and the limit of each refusal.
    """

    def __init__(
        self,
        writer: ScheduleWriter,
        artifacts: SessionArtifacts,
        policy: BudgetLimits,
        counted: Callable[[str, str], None],
    ) -> None:
        self._writer, self._artifacts, self._policy, self._counted = writer, artifacts, policy, counted
        self._kept: dict[str, float] = {}
        """When the files of a capture could not be deleted."""
        self._unreachable = -FILES_S
        """When the storage did not answer."""
        self._forbidden: dict[str, float] = {}
        """When the API server did not permit a planned capture for the first time."""
        self._memory = ScheduleMemory()
        self.decided_s = 0.0
        """Seconds of the last decision, in which the process did nothing else."""
        self._announced: dict[str, float] = {}

    async def step(
        self,
        stored: StoredSchedule,
        *,
        runs: Collection[ActiveRun],
        readings: Callable[[ActiveRun], RunReadings],
        captures: Collection[AutomaticCapture],
        others: Callable[[], Sequence[ScheduledCapture]],
        is_admitted: bool,
        now: float,
    ) -> StoredSchedule:
        """Do what is due; return the version of the schedule that is written last.

        The record is written before objects are created: an object that the API server has is always in it.

        Raises:
            ScheduleChanged: Another version is written meanwhile; nothing was created.
            ClusterError: The API server is not available; the next step goes on.
        """
        began_s = time.perf_counter()
        step = advance(
            stored.body,
            self._memory,
            runs=runs,
            readings=readings,
            captures=captures,
            others=others,
            policy=self._policy,
            is_admitted=is_admitted,
            now=now,
        )
        self.decided_s = time.perf_counter() - began_s
        if step.status != stored.body.status:
            stored = await self._writer.write(stored, step.status)
        await self._announce_refusals(stored, step, now)
        if any(each.state == "Planned" for each in step.status.captures or ()):
            stored = await self._create(stored, step.status, now)
        await self._delete(stored, step.leaving, captures, now)
        return stored

    async def _delete(
        self,
        stored: StoredSchedule,
        leaving: Sequence[PastCapture],
        captures: Collection[AutomaticCapture],
        now: float,
    ) -> None:
        """Delete captures that leave the history, with their files on request.

        An object whose files cannot be deleted stays, so that they are not forgotten.
        """
        history, known = stored.body.spec.history, {each.name: each for each in captures}
        self._kept = {name: time for name, time in self._kept.items() if name in known}
        for each in leaving:
            if history and history.delete_artifacts and not await self._delete_files(stored, known[each.name], now):
                continue
            await self._writer.delete(stored.body.metadata.namespace, each)

    async def _delete_files(self, stored: StoredSchedule, capture: AutomaticCapture, now: float) -> bool:
        """Delete the files of a capture; return whether they are gone."""
        if now - max(self._kept.get(capture.name, -FILES_S), self._unreachable) < FILES_S:
            return False
        try:
            await self._artifacts.delete(capture)
        except StoreError as error:
            self._kept[capture.name] = now
            if isinstance(error, StoreUnreachable):  # the others would wait for it too, and slots for them
                self._unreachable = now
            text = f"files of capture {capture.name}: {error}; tried again in {FILES_S / 60:g} minutes"
            await self._writer.announce(stored.body, "ArtifactsNotDeleted", text, warning=True)
            return False
        self._kept.pop(capture.name, None)
        return True

    async def _create(self, stored: StoredSchedule, status: ScheduleStatus, now: float) -> StoredSchedule:
        """Create the objects of planned captures, those of an earlier leader included."""
        refusal = await self._refusal_of_author(stored)
        results: dict[str, str] = {}
        for entry in status.captures or ():
            if entry.state != "Planned":
                continue
            if abs(now - entry.time.timestamp()) > LATEST_S:
                results[entry.name] = "the moment has passed"
                continue
            if refusal is not None:
                results[entry.name] = refusal.message
                await self._note(stored, entry, refusal)
                continue
            body = capture_body(stored.body, wanted_of(entry))
            refused = await self._writer.create(stored.body.metadata.namespace, body)
            if refused is not None and refused.status in NOT_PERMITTED and self._may_pass(entry.name, now):
                continue
            results[entry.name] = rejection = refused.cause if refused else ""
            message = f"spec.capture: {rejection}; change it, or ask the administrator"
            await self._note(stored, entry, Readiness(ScheduleReason.CAPTURE_REJECTED, message) if rejection else None)
        self._forbidden = {name: since for name, since in self._forbidden.items() if name not in results}
        if not results:
            return stored
        states = [_created(each, results) for each in status.captures or ()]
        return await self._writer.write(stored, status.model_copy(update={"captures": states}))

    def _may_pass(self, name: str, now: float) -> bool:
        """Return whether the next look creates a capture that was not permitted now."""
        return now - self._forbidden.setdefault(name, now) < FORBIDDEN_S

    async def _refusal_of_author(self, stored: StoredSchedule) -> Readiness | None:
        """Return why no capture may be created.

        None without an author, or if they still have the right to.
        """
        meta = stored.body.metadata
        author = Author.parse(meta.annotations.get(AUTHOR_ANNOTATION, ""))
        if author is None or await self._writer.may_capture(meta.namespace, author):
            return None
        message = (
            f"{author.name}, who wrote spec, may not create captures in namespace '{meta.namespace}' any more; grant "
            "them the right again, or let somebody who has it change spec"
        )
        return Readiness(ScheduleReason.AUTHOR_NOT_ALLOWED, message)

    async def _note(self, stored: StoredSchedule, entry: ScheduledCapture, rejection: Readiness | None) -> None:
        self._memory.rejected = rejection
        self._counted("rejected" if rejection else "created", str(entry.trigger or "Slot"))
        if rejection:
            await self._writer.announce(stored.body, str(rejection.reason), rejection.message, warning=True)
        else:
            message = f"capture {entry.name} of run {entry.run}: {entry.message}"
            await self._writer.announce(stored.body, "CaptureCreated", message)

    async def _announce_refusals(self, stored: StoredSchedule, step: ScheduleStep, now: float) -> None:
        for wanted, refusal in step.refused:
            self._counted("refused", str(refusal.reason))
            if now - self._announced.get(refusal.reason, -EVENT_S) >= EVENT_S:
                self._announced[refusal.reason] = now
                text = f"run {wanted.target}, {wanted.message}: {refusal.message}"
                await self._writer.announce(stored.body, "BudgetUsed", text, warning=True)


def _created(entry: ScheduledCapture, results: Mapping[str, str]) -> ScheduledCapture:
    if entry.name not in results:
        return entry
    return entry.model_copy(update={"state": "Refused" if results[entry.name] else "Created"})
