from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.model import Outcome, Reason, ServerProbe, Target, TargetState
from mldiagnostics_operator.captures.outcomes import (
    TargetOutcome,
    count,
    of_outcome,
    result,
    results,
    skew,
    summary,
)
from support.cluster.plans import captured, failed, target, target_outcomes


def size(outcome: TargetOutcome) -> int:
    return len(result(outcome).model_dump_json(by_alias=True, exclude_none=True).encode())


@given(target_outcomes(), st.integers(0, 3000))
def test_results_fit_the_limit_and_omit_captured_targets_first(outcomes: list[TargetOutcome], limit: int) -> None:
    shown = results(outcomes, max_bytes=limit)
    assert sum(len(one.model_dump_json(by_alias=True, exclude_none=True).encode()) + 1 for one in shown) <= limit
    omitted = len(outcomes) - len(shown)
    if omitted and count(outcomes)[TargetState.CAPTURED] >= omitted:
        assert {one.pod for one in shown} >= {e.target.pod for e in outcomes if e.state is TargetState.FAILED}


@given(target_outcomes())
def test_without_a_tight_limit_every_target_is_shown_once(outcomes: list[TargetOutcome]) -> None:
    shown = results(outcomes, max_bytes=2**20)
    assert sorted(one.pod for one in shown) == sorted(outcome.target.pod for outcome in outcomes)
    order = [one.state for one in shown]
    assert order == sorted(
        order, key=[TargetState.FAILED, TargetState.CANCELLED, TargetState.SKIPPED, TargetState.CAPTURED].index
    )


@given(target_outcomes())
def test_results_and_summary_do_not_depend_on_the_order_of_outcomes(outcomes: list[TargetOutcome]) -> None:
    assert results(outcomes, max_bytes=900) == results(outcomes[::-1], max_bytes=900)
    assert summary(outcomes) == summary(outcomes[::-1])


@given(target_outcomes())
def test_a_result_is_small_even_if_its_message_is_long(outcomes: list[TargetOutcome]) -> None:
    assert max(map(size, outcomes)) < 3000


@given(st.lists(st.integers(0, 2**62), max_size=5))
def test_the_skew_is_the_span_of_all_known_starts(starts: list[int]) -> None:
    outcomes = [captured(rank, start_ns=start) for rank, start in enumerate(starts)]
    span = skew([*outcomes, failed(9)])
    if len(starts) < 2:
        assert span is None
    else:
        assert span is not None
        assert abs(span - timedelta(microseconds=(max(starts) - min(starts)) / 1000)) <= timedelta(microseconds=1)


def test_an_outcome_keeps_all_fields_of_the_engines_outcome() -> None:
    engine_outcome = Outcome(
        target=Target("10.0.0.7", 9999, "trainer-0"),
        state=TargetState.CAPTURED,
        reason=Reason.CAPTURED,
        file="volume:///f",
        bytes=7,
        sha256="aa",
        start_ns=1,
        stop_ns=2,
        server=ServerProbe.SNAPSHOTS,
    )
    outcome = of_outcome(target(0), engine_outcome)
    for name in ("state", "reason", "message", "file", "bytes", "sha256", "start_ns", "stop_ns", "server"):
        assert getattr(outcome, name) == getattr(engine_outcome, name)


def test_the_summary_counts_and_gives_an_example_of_each_reason() -> None:
    outcomes = [captured(0), failed(2, Reason.BUSY, "b2"), failed(1, Reason.BUSY, "b1"), failed(3, Reason.SLOW, "s")]
    assert summary(outcomes) == "1 of 4 targets captured; 2 Busy (trainer-1: b1); 1 Slow (trainer-3: s)"
