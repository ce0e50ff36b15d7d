"""Findings about a run: those of its newest profile session that was diagnosed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.findings import MAX_DIAGNOSIS_BYTES, parse_diagnosis
from mldiagnostics.layout import DIAGNOSIS_RECORD
from mldiagnostics.store import open_store
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.findings import Finding
    from mldiagnostics.runs.session_rows import SessionRow


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding of a diagnosis of the run."""

    code: str
    """Name of the rule, such as `SlowHost`."""
    severity: str
    """`critical`, `warning` or `info`."""
    message: str
    session: str
    """Session in which it was found."""
    t: float | None
    """Time of the session, in Unix seconds."""
    hosts: tuple[str, ...] = ()
    """Pods that it is about, as far as they are known."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON; its time is RFC 3339, unknown values are null."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "session": self.session,
            "time": timestamp(self.t),
            "hosts": list(self.hosts),
        }


def findings(sessions: Sequence[SessionRow]) -> list[FindingRow]:
    """Return the findings about the newest session that has a diagnosis.

    Args:
        sessions: Sessions of a run, the oldest first.

    Returns:
        The findings, the most expensive one first; empty if no session has a diagnosis, or if it cannot be read.
    """
    newest = next((session for session in reversed(sessions) if session.is_diagnosed), None)
    if newest is None:
        return []
    try:
        return [_row(finding, newest) for finding in _read(newest)]
    except (MLDiagnosticsError, OSError) as error:
        warn_once("unreadable-diagnosis", str(error))
        return []


def _read(session: SessionRow) -> tuple[Finding, ...]:
    store = open_store(session.url)
    with store.open(DIAGNOSIS_RECORD) as file:
        content = file.read(MAX_DIAGNOSIS_BYTES + 1)
    diagnosis = parse_diagnosis(content, source=store.url(DIAGNOSIS_RECORD))
    if diagnosis.session != session.name:
        raise ConfigurationError(f"{store.url(DIAGNOSIS_RECORD)}: is about another session; diagnose the session again")
    return diagnosis.findings


def _row(finding: Finding, session: SessionRow) -> FindingRow:
    hosts = tuple(host.pod or host.name for host in finding.hosts)
    return FindingRow(finding.code, finding.severity, finding.message, session.name, session.t, hosts)
