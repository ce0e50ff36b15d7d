"""Profile sessions of a run: of captures, of the program, and adopted from files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.control_plane.report import MAX_SESSIONS

from mldiagnostics_api.names import CompleteReason
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mldiagnostics_api.captures.plan import CapturePlan

OF_CAPTURE: Final = "Capture"
OF_FILES: Final = "Files"
"""The session is known from its files alone."""

_STORED: Final = "Stored"
_SUCCESSES: Final = frozenset({CompleteReason.SUCCEEDED, CompleteReason.PARTLY_SUCCEEDED, _STORED, "stored", "spooled"})
"""States of profiles that can be opened: of captures, files and programs."""
MAX_ID: Final = 253
"""Longest name of a session in a status."""
_NAMED: Final = 3
"""Profiles that one message names."""
NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


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

    A name that the status cannot have is left out: users choose it.

    Args:
        files: Key below the directory and time of each file.
        directory: The log directory.
    """
    first: dict[str, datetime] = {}
    last: dict[str, datetime] = {}
    for key, modified in files:
        name = layout.session_of(key)
        if name is not None and len(name) <= MAX_ID and name.isprintable():
            first[name] = min(modified, first.get(name, modified))
            last[name] = max(modified, last.get(name, modified))
    return [
        RunSession(
            id=name,
            state=_STORED,
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
    newest = sorted(known.values(), key=lambda session: (session.start_time or NO_TIME, session.id))
    return status.model_copy(update={"profile_sessions": newest[-MAX_SESSIONS:] or None})


def session_messages(before: MLRunStatus, after: MLRunStatus) -> Iterable[tuple[str, str, bool]]:
    """Return reason, message and whether it is a warning for the profiles that ended.

    At most two: one for all profiles that were stored, one for the others.
    """
    known = {session.id for session in before.profile_sessions or () if session.stop_time}
    ended = [session for session in after.profile_sessions or () if session.stop_time and session.id not in known]
    stored = [session for session in ended if session.state in _SUCCESSES]
    others = [session for session in ended if session.state not in _SUCCESSES]
    for reason, sessions, warning in (("Captured", stored, False), ("CaptureFailed", others, True)):
        if sessions:
            named = [_named(session) for session in sessions[-_NAMED:]]
            more = [f"and {len(sessions) - _NAMED} earlier ones"] if len(sessions) > _NAMED else []
            yield reason, "; ".join([*named, *more]), warning


def _named(session: RunSession) -> str:
    origin = f"of capture {session.capture}" if session.capture else "of the program"
    if session.source == OF_FILES:
        origin = "found in the storage of the run"
    location = f", in {session.directory}" if session.directory else ""
    return f"profile {session.id} {origin}: {session.state or 'ended'}{location}"
