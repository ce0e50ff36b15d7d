from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mldiagnostics_api.runs.findings import run_findings, slow_verdict, with_findings
from mldiagnostics_api.v1alpha1 import (
    CaptureDiagnosis,
    CaptureFinding,
    FindingTarget,
    MLRunStatus,
    RunAttempt,
    RunFinding,
)

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def found(code: str, minute: int, *, severity: str = "critical", hosts: list[str] | None = None) -> list[RunFinding]:
    targets = [FindingTarget(pod=pod) for pod in hosts or ()]
    finding = CaptureFinding(code=code, severity=severity, message="late", next_step="look", targets=targets)
    diagnosis = CaptureDiagnosis(state="Done", findings=[finding])
    time = START + timedelta(minutes=minute)
    return run_findings(diagnosis, session=f"s-{minute}", capture="c", time=time)


def codes(status: MLRunStatus) -> list[str]:
    return [finding.code for finding in status.findings or ()]


def test_the_newest_diagnosis_replaces_the_one_before() -> None:
    first = with_findings(MLRunStatus(), found("SlowHost", 1, hosts=["w-2"]))
    assert first.findings is not None
    assert (first.findings[0].hosts, first.findings[0].session) == (["w-2"], "s-1")
    assert with_findings(first, ()) == first
    assert codes(with_findings(first, found("InputBound", 2))) == ["InputBound"]
    assert codes(with_findings(first, found("NoProblemFound", 2, severity="info"))) == ["NoProblemFound"]
    assert codes(with_findings(first, found("InputBound", 0))) == ["SlowHost"]  # of an earlier capture, diagnosed late
    assert codes(with_findings(first, found("Inconclusive", 2, severity="info"))) == ["SlowHost"]  # it saw nothing
    assert codes(with_findings(MLRunStatus(), found("Inconclusive", 2, severity="info"))) == ["Inconclusive"]


def test_a_slow_host_is_that_of_the_current_attempt() -> None:
    assert slow_verdict(MLRunStatus()) is None
    status = with_findings(MLRunStatus(), found("SlowHost", 10, hosts=["w-2"]))
    verdict = slow_verdict(status)
    assert verdict is not None
    assert (verdict.message, verdict.hosts) == ("by profile s-10: SlowHost w-2: late", ("w-2",))
    restarted = [
        RunAttempt(attempt=0, start_time=START),
        RunAttempt(attempt=1, start_time=START + timedelta(minutes=11)),
    ]
    assert slow_verdict(status.model_copy(update={"attempts": restarted})) is None
    assert slow_verdict(status.model_copy(update={"attempts": restarted[:1]})) == verdict
    for other in (found("InputBound", 10), found("SlowHost", 10, severity="info")):
        known = slow_verdict(with_findings(MLRunStatus(), other))
        assert known is not None
        assert not known.message
