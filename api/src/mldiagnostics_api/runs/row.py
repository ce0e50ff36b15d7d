"""Rows of runs from their MLRuns, the same as from files."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mldiagnostics.findings import SEVERITIES
from mldiagnostics.layout import session_prefix
from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.runs.attempt_row import AttemptRow
from mldiagnostics.runs.finding_rows import FindingRow
from mldiagnostics.runs.phase import phase_named
from mldiagnostics.runs.row import RunRow
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.runs.session_rows import SessionRow
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.reports.shown_configs import SECTIONS
from mldiagnostics_api.runs.display_name import display_name
from mldiagnostics_api.runs.observation import start_up_seconds
from mldiagnostics_api.runs.sessions import OF_CAPTURE
from mldiagnostics_api.v1alpha1 import RunAttempt


def run_row_of(body: Mapping[str, Any]) -> RunRow:
    """Return the row of an MLRun as the API returns it.

    Args:
        body: The object; missing and malformed values are unknown.
    """
    fields = FieldReader(body)
    metadata, spec, status = fields.part("metadata"), fields.part("spec"), fields.part("status")
    workload, progress = spec.part("workloadRef"), status.part("progress")
    words = chosen_description(body)
    run_id = status.text("runId") or spec.text("runId") or metadata.text("name")
    sessions = status.parts("profileSessions")
    chosen = _root(spec.text("storageLocation"))
    storage = chosen or _root(status.text("storageLocation"))
    directories = [session.text("directory") for session in sessions]
    last = _last(status.parts("attempts"))
    configs = status.part("configs")
    phase = phase_named(status.fields.get("phase"))
    return RunRow(
        run_id=run_id,
        name=display_name(
            chosen=words.name or "",
            reported=status.text("displayName"),
            workload=workload.text("name"),
            object_name=metadata.text("name"),
        ),
        run_group=spec.text("runGroup"),
        tags=tuple(reported_tags(body) if words.tags is None else words.tags),
        notes=status.text("reportedNotes") if words.notes is None else words.notes,
        workload=dict(workload.fields) or None,
        namespace=metadata.text("namespace"),
        phase=phase,
        reason=status.text("reason"),
        message=status.text("message"),
        attempt=status.integer("attempt"),
        hosts=status.part("hosts").integer("reporting"),
        step=progress.integer("step"),
        step_time_s=progress.number("stepTimeSeconds"),
        goodput=status.part("goodput").number("ratio"),
        goodput_as_of=_seconds(status.part("goodput").text("asOfTime")),
        is_independent=status.fields.get("independent") is True,
        created=_seconds(status.text("startTime")) or _seconds(metadata.text("creationTimestamp")),
        started=_seconds(last.text("startTime")) or _seconds(status.text("startTime")),
        ended=_seconds(status.text("completionTime")),
        held_since=None if phase in FINISHED_RUN_PHASES else _seconds(last.text("endTime")),
        heartbeat=_seconds(status.text("lastHeartbeatTime")),
        sessions=tuple(sorted(session.text("id") for session in sessions)),
        storage=storage or None,
        reported_storage=status.text("reportedStorage"),
        directory=_directory(chosen, storage, run_id, directories),
        url=status.text("url") or None,
        configs={name: dict(section) for name in SECTIONS if (section := configs.part(name).fields)},
    )


def chosen_description(body: Mapping[str, Any]) -> RunDescription:
    """Return the words that people gave an MLRun, those of its spec."""
    spec = FieldReader(body).part("spec").fields
    return RunDescription.of({**spec, "name": spec.get("displayName")})


def reported_tags(body: Mapping[str, Any]) -> list[str]:
    """Return the tags that the program of an MLRun gave it."""
    return FieldReader(body).part("status").texts("reportedTags")


def account_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the account of time of an MLRun; None without one.

    It has the keys of a breakdown in the JSON of a goodput report.
    """
    goodput = FieldReader(body).part("status").part("goodput")
    elapsed, end = goodput.number("elapsedSeconds"), _seconds(goodput.text("asOfTime"))
    if elapsed is None or end is None:
        return None
    return {
        "startTime": timestamp(end - elapsed),
        "endTime": timestamp(end),
        "elapsedSeconds": elapsed,
        "productiveSeconds": goodput.number("productiveSeconds") or 0.0,
        "goodput": goodput.number("ratio"),
        "unproductiveSeconds": goodput.numbers("unproductiveSeconds"),
        "windowSeconds": None,
    }


def attempts_of(body: Mapping[str, Any], row: RunRow) -> list[AttemptRow]:
    """Return the attempts of an MLRun, the oldest first.

    The last one has the phase of the run.
    """
    attempts = FieldReader(body).part("status").parts("attempts")
    return [
        AttemptRow(
            attempt=fields.integer("attempt"),
            incarnation="",
            started=_seconds(fields.text("startTime")),
            ended=_seconds(fields.text("endTime")),
            phase=row.phase if number == len(attempts) else "Failed",
            reason=fields.text("reason") or (row.reason if number == len(attempts) else ""),
            message=fields.text("message"),
            cause=fields.text("cause"),
            cause_message=fields.text("causeMessage"),
            start_up_s=_start_up(fields),
        )
        for number, fields in enumerate(attempts, 1)
    ]


def _start_up(attempt: FieldReader) -> dict[str, float]:
    """Return the seconds of a start-up by stage; empty if it is not known or goes on."""
    try:
        return start_up_seconds(RunAttempt.model_validate(attempt.fields))
    except ValueError:
        return {}


def last_metrics_of(body: Mapping[str, Any]) -> dict[str, float]:
    """Return the last value of each metric that the object of a run has."""
    return FieldReader(body.get("status")).numbers("metrics")


def findings_of(body: Mapping[str, Any]) -> list[FindingRow]:
    """Return the findings of the newest diagnosed capture of an MLRun."""
    return [
        FindingRow(
            code=finding.text("code"),
            severity=finding.text("severity"),
            message=finding.text("message"),
            session=finding.text("session"),
            t=_seconds(finding.text("time")),
            hosts=tuple(finding.texts("hosts")),
        )
        for finding in FieldReader(body).part("status").parts("findings")
        if finding.text("severity") in SEVERITIES
    ]


def sessions_of(body: Mapping[str, Any]) -> list[SessionRow]:
    """Return the profiles of an MLRun; their files are not known.

    The MLRun has findings of one session, so whether the others are diagnosed is not known.
    """
    fields = FieldReader(body)
    diagnosed = {finding.session for finding in findings_of(body)}
    namespace = fields.part("metadata").text("namespace")
    return [
        SessionRow(
            name=session.text("id"),
            kind="capture" if session.text("source") == OF_CAPTURE else "profile",
            t=_seconds(session.text("startTime")),
            object=f"{namespace}/{session.text('capture')}" if session.text("capture") else None,
            is_diagnosed=True if session.text("id") in diagnosed else None,
            url=f"{session.text('directory')}/{session_prefix(session.text('id'))}",
        )
        for session in fields.part("status").parts("profileSessions")
    ]


def _directory(chosen: str, storage: str, run_id: str, of_sessions: list[str]) -> str:
    """Return the directory of a run.

    Args:
        chosen: `spec.storageLocation`.
        storage: The root that the operator uses.
        run_id: Id of the run.
        of_sessions: Directories of its profiles: captures may have others, and the program may have its own root.
    """
    own = [each for each in of_sessions if each.endswith(f"/{run_id}")]
    if own and not chosen:
        return own[-1]
    return _below(storage, run_id) if storage else next(reversed(of_sessions), "")


def _root(location: str) -> str:
    """Return a location without slashes at its end, but those of `volume:///`."""
    return location if location.endswith(":///") else location.rstrip("/")


def _below(root: str, name: str) -> str:
    return f"{root}{name}" if root.endswith("/") else f"{root}/{name}"


def _last(entries: list[FieldReader]) -> FieldReader:
    return entries[-1] if entries else FieldReader({})


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
