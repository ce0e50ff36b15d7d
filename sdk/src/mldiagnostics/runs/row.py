"""One run as a row of a table, and its phase as a reader sees it; pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from mldiagnostics.lifecycle.outcome import TERMINATING, Phase, RunOutcome
from mldiagnostics.runs.row_values import FieldReader, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs.rank_row import RankRow

__all__ = ["AttemptRow", "RunRow", "attempt_rows", "directory_of", "folded", "phase_at", "phase_named", "run_row"]

HEARTBEATS_MISSED = 3
"""After how many intervals of silence a process counts as lost."""

_PHASES = frozenset({"Pending", "Active", "Completed", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as of the moment of reading.

    Times are Unix seconds. Values that are not known: None or an empty text.
    """

    run_id: str
    name: str
    """The name that the program gave its run."""
    run_group: str = ""
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
    """How many ranks the run has."""
    hosts: int | None = None
    """How many hosts report in the last attempt; `find_run` counts them."""
    host: str = ""
    """Host of the process that leads."""
    step: int | None = None
    step_time_s: float | None = None
    """Mean time of a step between two signs of life, in seconds."""
    goodput: float | None = None
    """Productive by elapsed time, from 0 to 1; `with_goodput` computes it."""
    created: float | None = None
    """Start of the first attempt."""
    started: float | None = None
    """Start of the last attempt."""
    ended: float | None = None
    heartbeat: float | None = None
    """Last sign of life."""
    sessions: tuple[str, ...] | None = None
    """Names of the profile sessions in the run's directory, sorted."""
    storage: str | None = None
    """Root of the runs, a path or URL."""
    directory: str
    """Directory of the run, a path or URL; other functions of this package take it."""
    url: str | None = None
    """Page of the run in a web view."""
    configs: Mapping[str, Any] = field(default_factory=dict)
    """Sections `software`, `hardware` and `user`."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The whole run.json; empty for a row from another source."""

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON with the keys of an MLRun.

        Times are RFC 3339, an unknown value is null. `configs` and `document` are left out.
        """
        return {
            "runId": self.run_id,
            "displayName": self.name or None,
            "runGroup": self.run_group or None,
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
            "creationTime": timestamp(self.created),
            "startTime": timestamp(self.started),
            "completionTime": timestamp(self.ended),
            "lastHeartbeatTime": timestamp(self.heartbeat),
            "profileSessions": None if self.sessions is None else list(self.sessions),
            "storageLocation": self.storage,
            "directory": self.directory,
            "url": self.url,
        }


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at a run. Times are Unix seconds, None where unknown."""

    attempt: int | None
    incarnation: str
    started: float | None
    ended: float | None
    phase: Phase
    reason: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as JSON; times are RFC 3339, unknown values are null."""
        return {
            "attempt": self.attempt,
            "incarnation": self.incarnation or None,
            "startTime": timestamp(self.started),
            "completionTime": timestamp(self.ended),
            "phase": self.phase,
            "reason": self.reason or None,
            "message": self.message or None,
        }


def directory_of(run: RunRow | str) -> str:
    """Return the directory of a run that is given as a row, or by its directory."""
    return run if isinstance(run, str) else run.directory


def phase_at(outcome: RunOutcome, *, heartbeat: float | None, interval_s: float | None, now: float) -> RunOutcome:
    """Return the phase as of `now`.

    An active run that was silent for three intervals is Failed, for the reason `Lost`.
    """
    if outcome.phase != "Active" or heartbeat is None or not interval_s:
        return outcome
    if now - heartbeat <= HEARTBEATS_MISSED * interval_s:
        return outcome
    since = (timestamp(heartbeat) or "an unknown time").partition(".")[0]
    silence = f"no sign of life since {since} UTC, one is due every {interval_s:g} s"
    if outcome.reason == TERMINATING:
        return RunOutcome("Failed", "Terminated", f"{outcome.message}; {silence}: killed before it had ended")
    return RunOutcome("Failed", "Lost", f"{silence}: killed, or the host is gone")


def run_row(
    document: Mapping[str, Any],
    *,
    directory: str,
    now: float,
    storage: str | None = None,
    sessions: tuple[str, ...] | None = None,
) -> RunRow:
    """Return the row of a run.json as of `now` (Unix seconds).

    Missing and malformed values are unknown.
    """
    fields = FieldReader(document)
    heartbeat, progress = fields.part("heartbeat"), fields.part("progress")
    workload = fields.part("identity").part("workload")
    last_beat, world_size = heartbeat.number("t"), fields.integer("worldSize")
    recorded = RunOutcome(phase_named(document.get("phase")), fields.text("reason"), fields.text("message"))
    outcome = phase_at(recorded, heartbeat=last_beat, interval_s=heartbeat.number("intervalSeconds"), now=now)
    return RunRow(
        run_id=fields.text("runId"),
        name=fields.text("name"),
        run_group=fields.text("runGroup"),
        workload=dict(workload.fields) or None,
        cluster=workload.text("cluster") or None,
        namespace=fields.text("namespace"),
        phase=outcome.phase,
        reason=outcome.reason,
        message=outcome.message,
        attempt=fields.integer("attempt"),
        world_size=world_size,
        hosts=1 if world_size == 1 else None,
        host=fields.text("host"),
        step=progress.integer("step"),
        step_time_s=progress.number("stepTimeSeconds"),
        created=fields.number("created"),
        started=fields.number("started"),
        ended=fields.number("ended") if recorded.phase == outcome.phase else last_beat,
        heartbeat=last_beat,
        sessions=sessions,
        storage=storage,
        directory=directory,
        url=fields.text("url") or None,
        configs=fields.part("configs").fields,
        document=document,
    )


def attempt_rows(run: RunRow) -> list[AttemptRow]:
    """Return the attempts of a run (at most the last 101), the oldest first."""
    earlier = run.document.get("attempts")
    rows = []
    for fields in map(FieldReader, earlier if isinstance(earlier, list) else []):
        outcome = phase_named(fields.fields.get("phase")), fields.text("reason"), fields.text("message")
        ended = fields.number("ended")
        rows.append(
            AttemptRow(fields.integer("attempt"), fields.text("incarnation"), fields.number("started"), ended, *outcome)
        )
    incarnation = FieldReader(run.document).text("incarnation")
    return [*rows, AttemptRow(run.attempt, incarnation, run.started, run.ended, run.phase, run.reason, run.message)]


def folded(row: RunRow, ranks: Sequence[RankRow]) -> RunRow:
    """Return the row as Failed if one of its ranks has failed in the same attempt."""
    attempt = row.attempt if row.attempt is not None else max((rank.attempt for rank in ranks), default=0)
    failed = [rank for rank in ranks if rank.phase == "Failed" and rank.attempt == attempt]
    if row.phase == "Failed" or not failed:
        return row
    first = failed[0]
    message = f"rank {first.rank} on {first.host or 'an unknown host'}: {first.message or first.reason}"
    if len(failed) > 1:
        message += f" (and {len(failed) - 1} more)"
    return replace(row, phase="Failed", reason=f"Worker{first.reason}", message=message)


def phase_named(text: object) -> Phase:
    """Return a phase by its name; Pending for anything else."""
    return cast("Phase", text) if isinstance(text, str) and text in _PHASES else "Pending"
