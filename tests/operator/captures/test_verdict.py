from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.model import Reason, TargetState
from mldiagnostics_api.names import CompleteReason as Words
from mldiagnostics_api.names import SkipReason
from mldiagnostics_operator.captures.outcomes import TargetOutcome, count, of_skip
from mldiagnostics_operator.captures.verdict import cancelled, judge
from support.cluster.plans import captured, failed, skipped, target_outcomes


@given(target_outcomes(), st.integers(1, 10))
def test_a_capture_succeeds_exactly_when_enough_targets_were_captured(
    outcomes: list[TargetOutcome], needed: int
) -> None:
    verdict = judge(outcomes, needed=needed)
    assert verdict.succeeded == (count(outcomes)[TargetState.CAPTURED] >= needed)
    assert verdict.reason


@given(target_outcomes(), st.integers(1, 10))
def test_one_more_captured_target_never_makes_it_worse(outcomes: list[TargetOutcome], needed: int) -> None:
    if judge(outcomes, needed=needed).succeeded:
        assert judge([*outcomes, captured(99)], needed=needed).succeeded


@given(target_outcomes())
def test_a_cancelled_capture_never_succeeds(outcomes: list[TargetOutcome]) -> None:
    verdict = cancelled(outcomes, len(outcomes))
    assert (verdict.succeeded, verdict.reason) == (False, Words.CANCELLED)


def test_a_reason_that_all_failures_share_is_the_reason_of_the_capture() -> None:
    assert judge([failed(0, Reason.STORE_FORBIDDEN), failed(1, Reason.STORE_FORBIDDEN)], needed=2).reason == (
        Reason.STORE_FORBIDDEN
    )
    assert judge([captured(0), failed(1, Reason.BUSY)], needed=2).reason == Reason.BUSY


def test_different_failures_have_a_common_reason() -> None:
    assert judge([failed(0, Reason.BUSY), failed(1, Reason.SLOW)], needed=1).reason == Words.NOTHING_CAPTURED
    mixed = [captured(0), failed(1, Reason.BUSY), failed(2, Reason.SLOW)]
    assert judge(mixed, needed=2).reason == Words.TOO_FEW_CAPTURED
    assert judge(mixed, needed=1).reason == Words.PARTLY_SUCCEEDED


def test_an_interruption_is_the_reason_even_with_other_failures() -> None:
    assert judge([failed(0, Reason.INTERRUPTED), failed(1)], needed=1).reason == Words.INTERRUPTED


def test_pods_that_no_controller_confirms_leave_the_result_of_the_others() -> None:
    forged = of_skip(skipped(9, SkipReason.NOT_CONFIRMED))
    verdict = judge([captured(0), captured(1), forged], needed=2, uncounted=1)
    assert (verdict.succeeded, verdict.reason) == (True, Words.SUCCEEDED)
    assert verdict.message.startswith("2 of 2 targets captured; 1 PositionNotConfirmed, not counted (trainer-9: ")
    named = judge([captured(0), forged], needed=1)
    assert named.reason == Words.PARTLY_SUCCEEDED
    assert judge([captured(0), failed(1), forged], needed=1, uncounted=1).reason == Words.PARTLY_SUCCEEDED
