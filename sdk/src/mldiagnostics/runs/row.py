"""One run as a row of a table, and its phase as a reader sees it; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.lifecycle.outcome import FINAL, Phase, RunOutcome
from mldiagnostics.runs.attempt_numbers import attempt_number
from mldiagnostics.runs.phase import phase_at, phase_named
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping


_UNEDITED = RunDescription()

INDEPENDENT_KINDS = frozenset({"Deployment", "ReplicaSet"})
"""Kinds of workloads whose pods have no ranks: without a launcher, each process is a run of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as of the moment of reading.

    Times are Unix seconds. Values that are not known: None or an empty text.
    """

    run_id: str
    name: str
    """The name that people gave the run later, else that of the program."""
    run_group: str = ""
    tags: tuple[str, ...] = ()
    """Words to find the run by."""
    notes: str = ""
    """Remarks about the run, for people."""
    workload: Mapping[str, Any] | None = None
    """The Kubernetes workload or Slurm job: `kind`, `name`, and further fields where known."""
    cluster: str | None = None
    namespace: str = ""
    phase: Phase
    """A run that fell silent is Failed, for the reason `Lost`."""
    reason: str = ""
    """One CamelCase word."""
    message: str = ""
    attempt: int | None = None
    """Number of the last attempt, from 0."""
    world_size: int | None = None
    """Number of ranks of the run."""
    hosts: int | None = None
    """Number of hosts that report in the last attempt."""
    host: str = ""
    """Host of the process that leads."""
    step: int | None = None
    """The step that started last."""
    step_time_s: float | None = None
    """Median time of the recent steps, in seconds."""
    goodput: float | None = None
    """Productive by elapsed time, from 0 to 1; `with_goodput` computes it."""
    goodput_as_of: float | None = None
    """Moment of `goodput`, if it is not that of reading."""
    is_independent: bool = False
    """Whether no rank leads its processes, such as those of a Deployment: it has no steps and no goodput."""
    created: float | None = None
    """Start of the first attempt."""
    started: float | None = None
    """Start of the last attempt."""
    ended: float | None = None
    """End of the last process; of one that fell silent, its last sign of life."""
    held_since: float | None = None
    """Since when a queue or a user holds the run back; None while it runs."""
    heartbeat: float | None = None
    """Last sign of life."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Records that were not kept, by reason."""
    complaints: Mapping[str, int] = field(default_factory=dict)
    """Warnings of the SDK in the process that leads, by subject."""
    sessions: tuple[str, ...] | None = None
    """Names of the profile sessions in the run's directory, sorted."""
    storage: str | None = None
    """Root of the runs, a path or URL."""
    reported_storage: str = ""
    """Place of files as the program reported it to a control plane, a path or URL; empty for a row from files."""
    directory: str
    """Directory of the run, a path or URL; other functions of this package take it."""
    url: str | None = None
    """Page of the run in a web view."""
    configs: Mapping[str, Any] = field(default_factory=dict)
    """Sections `software`, `hardware` and `user`."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The whole run.json; empty for a row from another source."""

    @property
    def account_end(self) -> float | None:
        """End of the account of goodput, also while the run is held back; else None."""
        return self.ended if self.phase in FINAL else self.held_since

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON with the keys of an MLRun.

        Times are RFC 3339, an unknown value is null. `configs` and `document` are left out.
        """
        return {
            "runId": self.run_id,
            "displayName": self.name or None,
            "runGroup": self.run_group or None,
            "tags": list(self.tags),
            "notes": self.notes or None,
            "workloadRef": None if self.workload is None else dict(self.workload),
            "cluster": self.cluster,
            "namespace": self.namespace or None,
            "phase": self.phase,
            "reason": self.reason or None,
            "message": self.message or None,
            "attempt": self.attempt,
            "worldSize": self.world_size,
            "hosts": {"reporting": self.hosts},
            "progress": {"step": self.step, "stepTimeSeconds": self.step_time_s},
            "goodput": self.goodput,
            "goodputAsOfTime": timestamp(self.goodput_as_of),
            "independent": self.is_independent,
            "creationTime": timestamp(self.created),
            "startTime": timestamp(self.started),
            "completionTime": timestamp(self.ended),
            "lastHeartbeatTime": timestamp(self.heartbeat),
            "drops": dict(self.drops),
            "complaints": dict(self.complaints),
            "profileSessions": None if self.sessions is None else list(self.sessions),
            "storageLocation": self.storage,
            "reportedStorage": self.reported_storage or None,
            "directory": self.directory,
            "url": self.url,
        }


def directory_of(run: RunRow | str) -> str:
    """Return the directory of a run that is given as a row, or by its directory."""
    return run if isinstance(run, str) else run.directory


def run_row(
    document: Mapping[str, Any],
    *,
    directory: str,
    now: float,
    storage: str | None = None,
    sessions: tuple[str, ...] | None = None,
    edits: RunDescription = _UNEDITED,
) -> RunRow:
    """Return the row of a run.json as of `now` (Unix seconds).

    Missing and malformed values are unknown; the words of `edits` count before those of the program.
    `fold.folded` adds the facts of the records.
    """
    fields = FieldReader(document)
    words = RunDescription.of({**document, **edits.to_json()})
    heartbeat, progress = fields.part("heartbeat"), fields.part("progress")
    workload = fields.part("identity").part("workload")
    last_beat, world_size = heartbeat.number("t"), fields.integer("worldSize")
    recorded = RunOutcome(phase_named(document.get("phase")), fields.text("reason"), fields.text("message"))
    is_independent = workload.text("kind") in INDEPENDENT_KINDS and world_size in {None, 1}
    outcome = phase_at(recorded, heartbeat=last_beat, interval_s=heartbeat.number("intervalSeconds"), now=now)
    return RunRow(
        run_id=fields.text("runId"),
        name=words.name or "",
        run_group=fields.text("runGroup"),
        tags=words.tags or (),
        notes=words.notes or "",
        workload=dict(workload.fields) or None,
        cluster=workload.text("cluster") or None,
        namespace=fields.text("namespace"),
        phase=outcome.phase,
        reason=outcome.reason,
        message=outcome.message,
        attempt=None if is_independent else attempt_number(document),
        is_independent=is_independent,
        world_size=world_size,
        hosts=1 if world_size == 1 else None,
        host=fields.text("host"),
        step=None if is_independent else progress.integer("step"),
        step_time_s=None if is_independent else progress.number("stepTimeSeconds"),
        created=fields.number("created"),
        started=fields.number("started"),
        ended=fields.number("ended") if recorded.phase == outcome.phase else last_beat,
        heartbeat=last_beat,
        drops=fields.counts("drops"),
        complaints=fields.counts("complaints"),
        sessions=sessions,
        storage=storage,
        directory=directory,
        url=fields.text("url") or None,
        configs=fields.part("configs").fields,
        document=document,
    )
