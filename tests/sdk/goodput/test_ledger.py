"""The ledger, rule by rule, with traces that a reader can check by hand."""

from __future__ import annotations

import pytest
from mldiagnostics.goodput.account import Bucket, TimelineSegment
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger import Ledger
from support.goodput.notation import T0, events, micros, summary

S = 1_000_000


def ledger(text: str) -> Ledger:
    result = Ledger(splits=False)
    for event in events(text):
        result.add(event)
    return result


def spent(text: str, now: float) -> dict[str, float]:
    return summary(ledger(text).account(micros(now)))


# R1 - Partition


def test_the_run_lasts_from_job_start_to_job_end() -> None:
    trace = ledger("job@0 0..3@10+10 end@50")
    assert summary(trace.account(micros(99))) == {"other": 10, "ok": 40, "of": 50, "max": 3}
    assert summary(trace.account(micros(35))) == {"other": 15, "ok": 20, "of": 35, "max": 1}
    assert (trace.started, trace.ended(micros(49)), trace.ended(micros(50))) == (micros(0), None, micros(50))


def test_without_a_job_start_the_run_begins_at_the_first_event() -> None:
    assert spent("tpu@5-8 0..2@10+10", 35) == {"tpu": 3, "other": 7, "ok": 20, "of": 30, "max": 1}
    assert ledger("tpu@5-8").started is None


def test_an_empty_ledger_returns_empty_results() -> None:
    empty = Ledger(splits=False)
    account = empty.account(micros(7))
    assert (account.start, account.end, account.elapsed, account.max_step) == (micros(7), micros(7), 0, None)
    assert list(empty.timeline(micros(7))) == empty.disruptions(micros(7)) == []
    assert [attempt.account for attempt in empty.attempts(micros(7))] == [account]
    assert empty.ideal_step_time(micros(7)) is empty.open_step(micros(7)) is None


def test_steps_before_the_first_job_start_are_outside() -> None:
    trace = ledger("0..2@1+2 job@10 5@12 6@14")
    assert summary(trace.account(micros(20))) == {"other": 8, "ok": 2, "of": 10, "max": 5}
    assert trace.disruptions(micros(20)) == []
    assert [attempt.first_step for attempt in trace.attempts(micros(20))] == [5]


# R2 - Second writers


def test_events_of_a_second_writer_are_not_restarts() -> None:
    once = "job@0 tpu@1-3 load@4-5 0..3@10+10"
    again = "job@0.3 tpu@1.4-3.5 load@4.2-5.1 0..3@10.9+10"
    assert spent(f"{once} {again}", 45) == spent(once, 45)
    assert dict(ledger(f"{once} {again}").ignored) == {}


def test_the_same_step_more_than_a_second_later_is_a_restart() -> None:
    assert spent("job@0 0@1 1@5 1@6.1", 7)["lost"] == 1
    assert "lost" not in spent("job@0 0@1 1@5 1@6", 7)


def test_ends_without_starts_and_starts_without_ends_are_counted() -> None:
    trace = ledger("job@0 tpu@-3 load@4- load@6-8 *eval@9-9 *sdc@11- 0@12 1@13 end@14 2@15")
    trace.account(micros(20))
    assert trace.ignored == {
        "end without start": 2,  # of the TPU, and of the event without length
        "start without end": 2,
        "negative or zero": 1,
        "after the job's end": 1,
    }


# Several ranks (docs/decisions/0009)


def test_the_lowest_rank_counts_and_checkpoints_of_all_ranks() -> None:
    own = "job@0 0..3@10+10"
    others = "job@2#1 0..3@11+10#1 save:2@31-33#1 save:2@32-35#2 alive@36#3"
    for text in (f"{own} {others}", f"{others} {own}"):
        trace = ledger(text)
        assert summary(trace.account(micros(40))) == {
            "other": 10, "startup": 2, "ok": 24, "save": 4, "of": 40, "max": 2,
        }  # fmt: skip
        assert trace.ignored == {"reported by another rank": 6}


# R2-R4, R7 - Attempts


def test_recovery_is_from_the_last_step_to_the_restart() -> None:
    trace = ledger("job@0 0..4@10+10 cause:preemption@55 alive@58 job@80 tpu@82-86 restore@87-90 2..5@95+10")
    assert summary(trace.account(micros(130))) == {
        "other": 10 + 2 + 1 + 5 + 5, "ok": 20 + 30, "wasted": 20, "recovery": 30, "tpu": 4, "restore": 3, "of": 130,
        "lost": 1, "max": 4,
    }  # fmt: skip
    (loss,) = trace.disruptions(micros(130))
    times = [loss.lost, loss.seen, loss.restarted, loss.resumed]
    assert times == [micros(50), micros(58), micros(80), micros(95)]
    assert (loss.cause, loss.steps_lost, loss.wasted) == ("preemption", 2, 20 * S)
    assert (loss.detect, loss.reschedule, loss.init, loss.restore) == (8 * S, 22 * S, 4 * S, 3 * S)
    assert (loss.first_step, loss.recovered) == (0, 45 * S)


def test_a_last_step_that_is_not_repeated_keeps_the_median_step_time() -> None:
    assert spent("job@0 0..4@10+10 job@100 5..7@110+10 end@140", 200) == {
        "other": 20, "ok": 40 + 10 + 30, "recovery": 40, "of": 140, "lost": 1, "max": 7,
    }  # fmt: skip
    assert spent("job@0 0..4@10+10 4.@53 job@100 5..7@110+10 end@140", 200)["recovery"] == 47


def test_without_a_job_start_the_first_initialization_is_the_restart() -> None:
    steps = "job@0 0..4@10+10 2..4@80+10"
    assert spent(steps, 105)["recovery"] == 30
    assert spent(f"{steps} load@74-75", 105)["recovery"] == 24
    assert spent(f"{steps} prep@70-72 tpu@65-66 load@74-75", 105)["recovery"] == 15


def test_recorded_compilation_is_part_of_the_recovery() -> None:
    trace = ledger("job@0 0..4@10+10 job@80 startup@85-88 5..7@95+10 startup@96-102 startup@106-107 end@125")
    (loss,) = trace.disruptions(micros(130))
    assert (loss.first_step, loss.recovered) == (9 * S, (95 - 60 + 6) * S)


def test_losses_before_the_job_start_cost_nothing() -> None:
    (loss,) = ledger("0..2@5+1 job@10 job@20 1..3@25+10").disruptions(micros(70))
    assert (loss.lost, loss.detect, loss.reschedule, loss.recovered) == (micros(10), 0, 10 * S, 15 * S)
    assert (loss.steps_lost, loss.wasted) == (1, 0)


def test_job_starts_without_steps_are_counted() -> None:
    trace = ledger("job@0 0..4@10+10 job@80 job@80.4 tpu@85-87 job@100 job@120")
    assert [loss.starts for loss in trace.disruptions(micros(130))] == [3]
    assert [loss.starts for loss in ledger("job@0 0..4@10+10 2..4@80+10").disruptions(micros(130))] == [0]


def test_an_outage_that_is_not_over() -> None:
    trace = ledger("job@0 0..4@10+10 job@80 tpu@85-")
    assert summary(trace.account(micros(90))) == {
        "other": 15, "ok": 40, "recovery": 30, "tpu": 5, "of": 90, "lost": 1, "max": 3,
    }  # fmt: skip
    (loss,) = trace.disruptions(micros(90))
    assert (loss.restarted, loss.resumed, loss.recovered) == (micros(80), None, 40 * S)
    assert trace.open_step(micros(79)) == (4, micros(50))
    assert trace.open_step(micros(90)) is None


def test_only_the_last_execution_of_a_step_counts() -> None:
    trace = ledger("job@0 0..6@0+10 job@70 4..6@70+10 job@100 1..6@100+10")
    assert summary(trace.account(micros(151))) == {
        "ok": 10 + 50, "wasted": 50 + 20, "recovery": 20, "other": 1, "of": 151, "lost": 2, "max": 5,
    }  # fmt: skip
    assert [loss.steps_lost for loss in trace.disruptions(micros(151))] == [2, 3 + 2]
    assert sum(loss.wasted for loss in trace.disruptions(micros(151))) == 70 * S


def test_the_first_step_of_an_attempt_is_startup_where_it_is_longer_than_the_others() -> None:
    assert spent("job@0 0@0 *eval@2-3 1@20 2@24 3@30", 30) == {
        "startup": 14, "*EVAL": 1, "ok": 15, "of": 30, "max": 2,
    }  # fmt: skip
    assert "startup" not in spent("job@0 0@0 1@20", 30)


def test_attempts_divide_the_run() -> None:
    trace = ledger("job@0 0..4@10+10 job@80 2..4@90+10 job@130")
    attempts = trace.attempts(micros(140))
    spans = [(a.number, a.start - T0 * S, a.end - T0 * S, a.first_step, a.last_step) for a in attempts]
    assert spans == [(0, 0, 80 * S, 0, 4), (1, 80 * S, 130 * S, 2, 4), (2, 130 * S, 140 * S, None, None)]
    assert [a.ended_by for a in attempts] == [*trace.disruptions(micros(140)), None]
    assert sum(a.account.productive for a in attempts) == trace.account(micros(140)).productive


# R5, R9, R12 - Spans


def test_the_innermost_span_wins_and_reinitialization_hides_spans_inside_it() -> None:
    assert spent("job@0 prep@0-20 restore@5-9 reinit@12-16 tpu@13-15 *eval@14-15", 30) == {
        "prep": 12, "restore": 4, "reinit": 3, "*EVAL": 1, "other": 10, "of": 30,
    }  # fmt: skip


def test_the_first_load_of_each_attempt_blocks_and_the_others_are_overlay() -> None:
    loads = "load@3-8 load@10.5-19 load@20.5-29 load@51-55 load@60.5-62"
    assert spent(f"job@0 0..2@10+10 job@50 1..3@60+10 {loads}", 80) == {
        "sync": 9, "async": 18.5, "other": 5 + 6, "ok": 30, "wasted": 10, "recovery": 20, "of": 80, "lost": 1, "max": 2,
    }  # fmt: skip


def test_a_load_becomes_blocking_when_its_step_is_repeated() -> None:
    trace = ledger("job@0 load@3-8 0..2@10+10 load@40-44")
    assert summary(trace.account(micros(45)))["async"] == 4
    trace.add(Event(micros(46), EventCode.STEP_START, 1))
    assert summary(trace.account(micros(47)))["sync"] == 5 + 4


def test_open_spans_count_until_an_event_contradicts_them() -> None:
    assert spent("job@0 tpu@2-", 10) == {"other": 2, "tpu": 8, "of": 10}
    assert spent("job@0 tpu@2- prep@5-", 10) == {"other": 5, "prep": 5, "of": 10}
    assert spent("job@0 prep@2- load@5-", 10) == {"other": 2, "prep": 3, "sync": 5, "of": 10}
    assert spent("job@0 0@1 *eval@2- 1@5", 10) == {"other": 6, "ok": 4, "of": 10, "max": 0}
    assert spent("job@0 0@1 *eval@2-7 1@5", 10)["*EVAL"] == 5


def test_an_end_in_the_next_attempt_does_not_close_a_span_of_a_killed_one() -> None:
    trace = ledger("job@0 1@10 2@20 *eval@25- job@100 1@110 2@120 *eval@-125 3@130")
    account = summary(trace.account(micros(135)))
    assert account == {"other": 10 + 10 + 5, "wasted": 10, "recovery": 80, "ok": 20, "of": 135, "lost": 1, "max": 2}
    assert trace.ignored == {"start without end": 1, "end without start": 1}
    for span, ended in (("load", "sync"), ("prep", "prep"), ("save", "save")):
        text = f"job@0 1@10 2@20 {span}@25- job@100 {span}@-107 1@110 2@120"
        assert ended not in spent(text, 135)
        assert spent(f"{text} {span}@101-107", 135)[ended] == 6


def test_a_span_around_the_first_job_start_and_a_save_of_another_rank_stay_open() -> None:
    assert spent("tpu@5-12 job@10 0@15 1@20", 20) == {"tpu": 2, "other": 3, "ok": 5, "of": 10, "max": 0}
    save = spent("job@0 0..2@10+10 save@98-103#1 job@100 2@110", 115)
    assert save["save"] == 5


# R8, R10 - Windows and exclusions


def test_a_window_clips_the_same_timeline() -> None:
    trace = ledger("job@0 tpu@2-6 0..4@10+10 end@60")
    window = trace.account(micros(99), start=micros(4), end=micros(25))
    assert summary(window) == {"tpu": 2, "other": 4, "ok": 15, "of": 21, "max": 0}
    gone = [(micros(15), micros(30)), (micros(20), micros(40)), (micros(-9), micros(3))]
    without = trace.account(micros(99), exclude=gone)
    assert summary(without) == {"tpu": 3, "other": 4, "ok": 25, "of": 32, "out": 28, "max": 4}


def test_the_timeline_names_the_step() -> None:
    trace = ledger("job@0 0@2 *eval@3-4 1@6")
    assert list(trace.timeline(micros(7))) == [
        TimelineSegment(micros(0), micros(2), Bucket(BadputType.OTHER)),
        TimelineSegment(micros(2), micros(3), None, 0),
        TimelineSegment(micros(3), micros(4), Bucket(BadputType.CUSTOM_BADPUT_EVENTS, "EVAL")),
        TimelineSegment(micros(4), micros(6), None, 0),
        TimelineSegment(micros(6), micros(7), Bucket(BadputType.OTHER)),
    ]


# A job start after a job end (docs/decisions/0009)


def test_with_run_ids_a_job_may_start_after_its_end() -> None:
    text = "job@0 0..2@0+10 end@30 job@50 3..4@60+10"
    assert spent(text, 75) == {"ok": 40, "recovery": 20, "other": 15, "of": 75, "lost": 1, "max": 3}
    assert spent(text, 45) == {"ok": 30, "of": 30, "max": 2}


# Step durations, causes, slices


def test_ideal_step_time_leaves_outliers_out() -> None:
    trace = ledger("job@0 0..9@0+10 9.@95 10@190 11@200")
    assert list(trace.step_times(micros(999)).durations) == [10 * S] * 9 + [100 * S, 10 * S]
    assert trace.ideal_step_time(micros(999)) == 10 * S
    trace.add(Event(micros(190.5), EventCode.STEP_START, 10))
    assert trace.ideal_step_time(micros(999)) == 10 * S


def test_steps_below_a_second_are_left_out_only_where_they_are_the_minority() -> None:
    assert ledger("job@0 0..9@0+0.25").ideal_step_time(micros(99)) == 250_000
    assert ledger("job@0 0..4@0+0.25 5@3 6..9@5+2").ideal_step_time(micros(99)) == 2 * S
    assert ledger("job@0 0..199@0+0.3 200@79.7").ideal_step_time(micros(99)) == 300_000


def test_an_elastic_wait_is_the_cause_without_a_recorded_cause() -> None:
    lost = "job@0 0..2@0+10 {}@25-30 1..2@40+10"
    for word, cause in (("down", "slice_down"), ("up", "scale_up"), ("tpu", "unknown")):
        (loss,) = ledger(lost.format(word)).disruptions(micros(60))
        assert loss.cause == cause


def test_slice_shares_are_weighted_by_time() -> None:
    trace = ledger("job@0 slices:4/4/4@0 slices:0/4/2@10 slices:2/4/2@15")
    assert trace.slices(micros(20), micros(0), micros(20)) == pytest.approx((0.625, 0.75))
    assert trace.slices(micros(20), micros(10), micros(15)) == (0, 0.5)
    assert ledger("job@0").slices(micros(20), micros(0), micros(20)) is None
