from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.runs.findings import newest_findings, run_findings, slow_verdict, with_findings
from mldiagnostics_api.v1alpha1 import (
    CaptureDiagnosis,
    CaptureFinding,
    FindingTarget,
    MLRunStatus,
    RunAttempt,
    RunFinding,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def noted(code: str, minute: int, *, severity: str = "critical", hosts: list[str] | None = None) -> list[RunFinding]:
    targets = [FindingTarget(pod=pod) for pod in hosts or ()]
    finding = CaptureFinding(code=code, severity=severity, message="late", next_step="look", targets=targets)
    diagnosis = CaptureDiagnosis(state="Done", findings=[finding])
    time = START + timedelta(minutes=minute)
    return run_findings(diagnosis, run_id="r", session=f"s-{minute}", capture="c", time=time)


def codes(status: MLRunStatus) -> list[str]:
    return [finding.code for finding in status.findings or ()]


def test_the_newest_diagnosis_replaces_the_one_before() -> None:
    first = with_findings(MLRunStatus(), noted("SlowHost", 1, hosts=["w-2"]))
    assert first.findings is not None
    assert (first.findings[0].hosts, first.findings[0].session) == (["w-2"], "s-1")
    assert with_findings(first, ()) == first
    assert with_findings(MLRunStatus(), ()) == MLRunStatus()
    assert codes(with_findings(first, noted("InputBound", 2))) == ["InputBound"]
    assert codes(with_findings(first, noted("NoProblemFound", 2, severity="info"))) == ["NoProblemFound"]
    assert codes(with_findings(first, noted("InputBound", 0))) == ["SlowHost"]  # of an earlier capture, diagnosed late
    assert codes(with_findings(first, noted("Inconclusive", 2, severity="info"))) == ["SlowHost"]  # it saw nothing
    assert codes(with_findings(MLRunStatus(), noted("Inconclusive", 2, severity="info"))) == ["Inconclusive"]


def test_a_slow_host_is_that_of_the_current_attempt() -> None:
    assert slow_verdict(MLRunStatus()) is None
    status = with_findings(MLRunStatus(), noted("SlowHost", 10, hosts=["w-2"]))
    verdict = slow_verdict(status)
    assert verdict is not None
    assert (verdict.message, verdict.hosts) == ("by profile s-10: SlowHost w-2: late", ("w-2",))
    restarted = [
        RunAttempt(attempt=0, start_time=START),
        RunAttempt(attempt=1, start_time=START + timedelta(minutes=11)),
    ]
    assert slow_verdict(status.model_copy(update={"attempts": restarted})) is None
    assert slow_verdict(status.model_copy(update={"attempts": restarted[:1]})) == verdict
    for other in (noted("InputBound", 10), noted("SlowHost", 10, severity="info")):
        known = slow_verdict(with_findings(MLRunStatus(), other))
        assert known is not None
        assert not known.message


def test_a_finding_of_one_run_is_in_its_status_alone() -> None:
    listed = [
        CaptureFinding(code=code, severity="info", message="m", next_step="n", run_id=run_id)
        for code, run_id in (("SlowHost", "a"), ("InputBound", "b"), ("Recompiling", None))
    ]
    diagnosis = CaptureDiagnosis(state="Done", findings=listed)
    of_a = run_findings(diagnosis, run_id="a", session="s", capture="c", time=START)
    assert [finding.code for finding in of_a] == ["SlowHost", "Recompiling"]


@given(st.permutations([("SlowHost", 1), ("InputBound", 2), ("Inconclusive", 3)]))
def test_the_newest_findings_do_not_depend_on_the_order_in_which_captures_are_read(
    order: list[tuple[str, int]],
) -> None:
    newest: Sequence[RunFinding] = ()
    for code, minute in order:
        newest = newest_findings(newest, noted(code, minute))
    assert [finding.code for finding in newest] == ["InputBound"]
