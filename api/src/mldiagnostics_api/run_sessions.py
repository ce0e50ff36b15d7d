"""Profile sessions of a run: of captures, of the program, and adopted from files."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from mldiagnostics import layout

from mldiagnostics_api.plan import CapturePlan
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession
from mldiagnostics_api.v1alpha1.mlrun import MAX_SESSIONS

OF_CAPTURE: Final = "Capture"
OF_FILES: Final = "Files"
"""The session is known from its files alone."""

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


def capture_sessions(
    plan: CapturePlan, name: str, state: str, *, stopped: datetime | None = None
) -> Mapping[str, RunSession]:
    """Return the session of a capture in each run that it has targets of, by run id.

    Args:
        plan: Plan of the capture.
        name: Name of the MLDiagnosticsConnection.
        state: State of the capture, or its result.
        stopped: End of the capture.
    """
    return {
        target.run_id: RunSession(
            id=plan.session,
            state=state[:64],
            source=OF_CAPTURE,
            capture=name,
            directory=str(target.directory)[:1024],
            start_time=plan.planned_start.replace(microsecond=0),
            stop_time=stopped.replace(microsecond=0) if stopped else None,
        )
        for target in plan.targets
        if target.run_id
    }


def adopted_sessions(files: Iterable[tuple[str, datetime]], directory: str) -> list[RunSession]:
    """Return the sessions whose traces are in the log directory of a run.

    Args:
        files: Key below the directory and time of each file.
        directory: The log directory.
    """
    first: dict[str, datetime] = {}
    last: dict[str, datetime] = {}
    for key, modified in files:
        name = layout.session_of(key)
        if name is not None:
            first[name] = min(modified, first.get(name, modified))
            last[name] = max(modified, last.get(name, modified))
    return [
        RunSession(
            id=name,
            state="Stored",
            source=OF_FILES,
            directory=directory[:1024],
            start_time=first[name].replace(microsecond=0),
            stop_time=last[name].replace(microsecond=0),
        )
        for name in sorted(first)
    ]


def with_sessions(status: MLRunStatus, sessions: Iterable[RunSession]) -> MLRunStatus:
    """Return a status with further sessions; files add only unreported ones."""
    known = {session.id: session for session in status.profile_sessions or ()}
    for session in sessions:
        before = known.get(session.id)
        if before is None or before.source == OF_FILES or session.source == OF_CAPTURE == before.source:
            known[session.id] = session
    newest = sorted(known.values(), key=lambda session: (session.start_time or _NO_TIME, session.id))
    return status.model_copy(update={"profile_sessions": newest[-MAX_SESSIONS:] or None})
