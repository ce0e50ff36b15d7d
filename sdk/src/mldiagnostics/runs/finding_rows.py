"""Findings about a run: those of its newest profile session that was diagnosed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.findings import INCONCLUSIVE, MAX_DIAGNOSIS_BYTES, parse_diagnosis
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


_MAX_READ: Final = 16
"""Newest diagnoses that are read until one is conclusive."""


def findings(sessions: Sequence[SessionRow]) -> list[FindingRow]:
    """Return the findings about the newest session that has a diagnosis.

    A diagnosis that saw nothing, whose findings are all `Inconclusive`, does not hide those of an older session.

    Args:
        sessions: Sessions of a run, the oldest first.

    Returns:
        The findings, the most expensive one first; empty if no session has a diagnosis, or if it cannot be read.
    """
    newest: list[FindingRow] = []
    for session in islice((each for each in reversed(sessions) if each.is_diagnosed), _MAX_READ):
        try:
            rows = [_row(finding, session) for finding in _read(session)]
        except (MLDiagnosticsError, OSError) as error:
            warn_once("unreadable-diagnosis", str(error))
            break
        if not rows or any(row.code != INCONCLUSIVE for row in rows):
            return rows
        newest = newest or rows
    return newest


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
