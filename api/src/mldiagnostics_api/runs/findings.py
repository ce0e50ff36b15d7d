"""Findings of diagnosed captures in the status of their runs."""

from collections.abc import Sequence
from datetime import datetime

from mldiagnostics.findings import INCONCLUSIVE, SLOW_CODES

from mldiagnostics_api.runs.signals import SlowVerdict
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, MLRunStatus, RunFinding


def run_findings(
    diagnosis: CaptureDiagnosis, *, run_id: str, session: str, capture: str, time: datetime
) -> list[RunFinding]:
    """Return the findings of a diagnosed capture for one of its runs.

    Args:
        diagnosis: Diagnosis in the status of the capture.
        run_id: Id of the run.
        session: Its session.
        capture: Name of the object.
        time: End of the capture.
    """
    return [
        RunFinding(
            code=finding.code,
            severity=finding.severity,
            message=finding.message,
            hosts=[target.pod for target in finding.targets or ()] or None,
            session=session,
            capture=capture,
            time=time.replace(microsecond=0),
        )
        for finding in diagnosis.findings or ()
        if finding.run_id in (None, run_id)
    ]


def newest_findings(one: Sequence[RunFinding], other: Sequence[RunFinding]) -> Sequence[RunFinding]:
    """Return the findings of the newer one of two diagnosed profiles.

    A profile without findings counts for nothing. A diagnosis that saw nothing (all findings are inconclusive) resolves
    none.
    """
    if not one or not other:
        return one or other
    older, newer = (one, other) if one[0].time <= other[0].time else (other, one)
    return older if all(finding.code == INCONCLUSIVE for finding in newer) else newer


def with_findings(status: MLRunStatus, findings: Sequence[RunFinding]) -> MLRunStatus:
    """Return a status with the findings of the newest diagnosed profile.

    The findings before leave.
    """
    before = status.findings or []
    newest = list(newest_findings(before, findings))
    return status if newest == before else status.model_copy(update={"findings": newest})


def slow_verdict(status: MLRunStatus) -> SlowVerdict | None:
    """Return the slow hosts of the newest diagnosis of the current attempt, or None."""
    started = status.attempts[-1].start_time if status.attempts else None
    findings = [each for each in status.findings or () if started is None or each.time >= started]
    if not findings:
        return None
    for finding in findings:
        if finding.code in SLOW_CODES and finding.severity != "info":
            who = f" {', '.join(finding.hosts)}" if finding.hosts else ""
            message = f"by profile {finding.session}: {finding.code}{who}: {finding.message}"
            return SlowVerdict(message, tuple(finding.hosts or ()))
    return SlowVerdict()
