from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.model import Outcome, Reason, ServerProbe, Target, TargetState
from mldiagnostics_operator.captures.outcomes import (
    TargetOutcome,
    count,
    interrupted,
    lost,
    of_file,
    of_outcome,
    result,
    results,
    skew,
    summary,
)
from support.plans import captured, endings, failed, plan, target


def size(ending: TargetOutcome) -> int:
    return len(result(ending).model_dump_json(by_alias=True, exclude_none=True).encode())


@given(endings(), st.integers(0, 3000))
def test_results_never_exceed_their_room_and_leave_out_the_best_first(ended: list[TargetOutcome], room: int) -> None:
    shown = results(ended, max_bytes=room)
    assert sum(len(one.model_dump_json(by_alias=True, exclude_none=True).encode()) + 1 for one in shown) <= room
    left_out = len(ended) - len(shown)
    if left_out and count(ended)[TargetState.CAPTURED] >= left_out:
        assert {one.pod for one in shown} >= {e.target.pod for e in ended if e.state is TargetState.FAILED}


@given(endings())
def test_with_room_enough_every_target_is_shown_once(ended: list[TargetOutcome]) -> None:
    shown = results(ended, max_bytes=2**20)
    assert sorted(one.pod for one in shown) == sorted(ending.target.pod for ending in ended)
    order = [one.state for one in shown]
    assert order == sorted(
        order, key=[TargetState.FAILED, TargetState.CANCELLED, TargetState.SKIPPED, TargetState.CAPTURED].index
    )


@given(endings())
def test_what_is_shown_does_not_depend_on_the_order_in_which_targets_ended(ended: list[TargetOutcome]) -> None:
    assert results(ended, max_bytes=900) == results(ended[::-1], max_bytes=900)
    assert summary(ended) == summary(ended[::-1])


@given(endings())
def test_a_result_stays_small_however_long_the_message(ended: list[TargetOutcome]) -> None:
    assert max(map(size, ended)) < 3000


@given(st.lists(st.integers(0, 2**62), max_size=5))
def test_the_skew_is_the_span_of_all_known_starts(starts: list[int]) -> None:
    ended = [captured(rank, start_ns=start) for rank, start in enumerate(starts)]
    apart = skew([*ended, failed(9)])
    if len(starts) < 2:
        assert apart is None
    else:
        assert apart is not None
        assert abs(apart - timedelta(microseconds=(max(starts) - min(starts)) / 1000)) <= timedelta(microseconds=1)


def test_an_outcome_keeps_all_that_the_engine_says() -> None:
    said = Outcome(
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
    ending = of_outcome(target(0), said)
    for name in ("state", "reason", "message", "file", "bytes", "sha256", "start_ns", "stop_ns", "server"):
        assert getattr(ending, name) == getattr(said, name)


def test_the_summary_counts_and_gives_an_example_of_each_reason() -> None:
    ended = [captured(0), failed(2, Reason.BUSY, "b2"), failed(1, Reason.BUSY, "b1"), failed(3, Reason.SLOW, "s")]
    assert summary(ended) == "1 of 4 targets captured; 2 Busy (trainer-1: b1); 1 Slow (trainer-3: s)"


def test_what_a_restart_or_a_cancel_took_is_told_apart() -> None:
    assert lost(target(0), Reason.INTERRUPTED).state is TargetState.FAILED
    assert lost(target(0), Reason.CANCELLED).state is TargetState.CANCELLED


@given(st.integers(0, 4), st.integers(0, 3), st.data())
def test_after_a_restart_every_target_is_accounted_for_once(targets: int, skips: int, data: st.DataObject) -> None:
    planned = plan(targets, skips)
    everyone = [*planned.targets, *planned.skipped]
    kept = data.draw(st.sets(st.sampled_from(everyone)) if everyone else st.just(set()))
    stored = [of_file(one, file="f", size=1) for one in kept]
    ended = interrupted(planned, stored, Reason.INTERRUPTED)
    assert sorted(ending.target.pod for ending in ended) == sorted(one.pod for one in everyone)
    assert {ending.target for ending in ended if ending.stored} == kept
    lost_ones = {ending.target for ending in ended if ending.reason == Reason.INTERRUPTED}
    assert lost_ones == set(planned.targets) - kept
