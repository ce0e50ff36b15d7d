"""Findings of diagnosed captures in the status of their runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from mldiagnostics_api.runs.signals import SlowVerdict
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, MLRunStatus, RunFinding

INCONCLUSIVE: Final = "Inconclusive"
"""Code of a finding that says why nothing could be seen; it resolves no other finding."""
SLOW_CODES: Final = ("SlowHost", "SeveralSlowHosts", "AlternatingHosts")


def run_findings(diagnosis: CaptureDiagnosis, *, session: str, capture: str, time: datetime) -> list[RunFinding]:
    """Return the findings of a diagnosed capture for the runs of its targets.

    Args:
        diagnosis: Diagnosis in the status of the capture.
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
    ]


def with_findings(status: MLRunStatus, newest: Sequence[RunFinding]) -> MLRunStatus:
    """Return a status with the findings of the newest diagnosed profile.

    The findings before leave. A diagnosis that saw nothing (all findings are inconclusive) resolves none.
    """
    before = status.findings or []
    if not newest or (before and newest[0].time < before[0].time):
        return status
    if before and all(finding.code == INCONCLUSIVE for finding in newest):
        return status
    return status.model_copy(update={"findings": list(newest)})


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
