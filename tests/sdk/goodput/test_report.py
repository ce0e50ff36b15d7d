"""Reports: the figures of a known job, and laws for any log."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.report import GoodputReport, as_json, from_json, make_report
from support.goodput.histories import START, jobs, logs, moments
from support.goodput.notation import events, micros
from support.goodput.story import S, Story, eventful, finished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.events.event import Event
    from mldiagnostics.goodput.report import TimeBreakdown


def ledger_of(events: Iterable[Event]) -> Ledger:
    ledger = Ledger(splits=False)
    for event in events:
        ledger.add(event)
    return ledger


@pytest.fixture(scope="module")
def story() -> Story:
    return eventful()


@pytest.fixture(scope="module")
def report(story: Story) -> GoodputReport:
    created = story.events[0].t - 600 * S
    return make_report(ledger_of(story.events), now=story.clock, windows_s=[600, 86_400], devices=256, created=created)


def test_disruptions_have_losses_and_phases(report: GoodputReport) -> None:
    first, second = report.disruptions
    assert (first.cause, second.cause) == ("preemption", "unknown")
    assert (first.steps_lost, second.steps_lost) == (10, 30)
    assert first.recovery.reschedule_s == 70
    assert second.recovery.reschedule_s == 160
    assert (first.recovery.restore_s, second.recovery.restore_s) == (14, 12)
    assert first.recovery.init_s == 18 + 9 + 6
    assert first.recovery.first_step_s == pytest.approx(25, abs=0.1)
    assert first.recovery.detect_s == pytest.approx(20 + 2.2, abs=0.2)  # a step, then silence
    assert first.resumed is not None
    assert first.recovery.total_s == pytest.approx(first.resumed - first.lost + first.recovery.first_step_s)


def test_losing_a_slice_is_a_failure_also_if_no_step_is_repeated() -> None:
    trace = "job@0 0..3@5+10 down@47-67 reinit@67-87 4@90 5@100 end@110"
    report = make_report(ledger_of(events(trace)), now=micros(120))
    assert (report.cumulative.productive_s, report.failures.count) == (60, 1)
    grown = make_report(ledger_of(events(trace.replace("down", "up"))), now=micros(120))
    assert (len(grown.disruptions), grown.failures.count) == (1, 0)


def test_the_mean_recovery_is_that_of_both(report: GoodputReport) -> None:
    mean = report.failures.recovery
    assert mean is not None
    assert mean.total_s == pytest.approx(sum(each.recovery.total_s for each in report.disruptions) / 2)
    assert mean.restore_s == 13


def test_time_to_failure_is_operation_by_failures(report: GoodputReport) -> None:
    away = sum(each.recovery.total_s for each in report.disruptions)
    assert report.failures.operating_s == pytest.approx(report.cumulative.elapsed_s - away)
    assert report.failures.mttf_s == pytest.approx(report.failures.operating_s / 2)
    assert report.failures.mttf_device_s == pytest.approx(report.failures.operating_s / 2 * 256)


def test_lost_work_is_waste_and_recoveries_of_all_devices(report: GoodputReport) -> None:
    lost = report.lost_work
    assert lost.wasted_s == report.cumulative.unproductive_s["WASTED_PROGRESS_FROM_DISRUPTION"]
    assert lost.total_s == lost.wasted_s + lost.recovery_s
    assert lost.device_hours == pytest.approx(lost.total_s * 256 / 3600)


def test_saves_are_counted_and_compared_with_the_best_interval(report: GoodputReport) -> None:
    saves = report.checkpoints
    assert (saves.saves, saves.cost_s) == (14, 3)  # steps 50 to 250, 300 to 400, 450 to 700
    assert saves.interval_s == pytest.approx(50 * 2.35 + 11, abs=15)
    assert saves.young_s == pytest.approx((2 * 3 * (report.failures.mttf_s or 0)) ** 0.5)
    assert saves.overhead is not None
    assert saves.best_overhead is not None
    assert 0 < saves.best_overhead <= saves.overhead


def test_windows_end_now_and_since_resume_begins_with_the_last_restart(report: GoodputReport, story: Story) -> None:
    ten_minutes, day = report.windows
    assert (ten_minutes.window_s, ten_minutes.elapsed_s, ten_minutes.end) == (600, 600, story.clock / 1e6)
    assert day.elapsed_s == report.cumulative.elapsed_s
    assert report.since_resume.start == report.disruptions[-1].restarted
    assert report.since_resume.disruptions == 0
    assert (report.since_resume.goodput or 0) > (report.cumulative.goodput or 0)


def test_queueing_counts_from_the_creation(report: GoodputReport) -> None:
    queueing = report.queueing
    assert queueing is not None
    assert queueing.queued_s == 600
    wall = report.cumulative.elapsed_s + 600
    assert queueing.ettr == pytest.approx(report.cumulative.productive_s / wall)
    assert queueing.scheduling_goodput == pytest.approx((wall - 600 - 230) / wall)


def test_attempts_divide_the_run(report: GoodputReport) -> None:
    assert [(each.first_step, each.last_step) for each in report.attempts] == [(0, 260), (250, 430), (400, 700)]
    assert [each.ended_by for each in report.attempts] == ["preemption", "unknown", None]
    assert report.start_told
    assert sum(each.stretch.elapsed_s for each in report.attempts) == pytest.approx(report.cumulative.elapsed_s)


def test_exclusions_shorten_every_breakdown(story: Story) -> None:
    begin = story.events[0].t
    report = make_report(ledger_of(story.events), now=story.clock, exclude=[(begin, begin + 100 * S)])
    whole = report.cumulative
    assert whole.excluded_s == report.attempts[0].stretch.excluded_s == 100
    assert whole.elapsed_s == pytest.approx(whole.end - whole.start - 100)


def test_exclusions_change_no_figure_of_reliability_and_cost(story: Story) -> None:
    ledger, lost = ledger_of(story.events), ledger_of(story.events).disruptions(story.clock)[0]
    exclude = [(lost.lost - 60 * S, lost.restarted)]
    options = {"now": story.clock, "devices": 256, "created": story.events[0].t}
    plain, without = make_report(ledger, **options), make_report(ledger, **options, exclude=exclude)
    assert without.cumulative.excluded_s == (lost.restarted - lost.lost) / S + 60
    for name in ("disruptions", "ettr", "failures", "lost_work", "checkpoints", "steps", "hang", "queueing"):
        assert getattr(without, name) == getattr(plain, name)


def test_a_job_without_trouble_has_no_figures_of_failure() -> None:
    job = finished()
    report = make_report(ledger_of(job.events), now=job.clock + 3600 * S, windows_s=[60])
    assert report.ended == report.cumulative.end == job.clock / 1e6
    assert (report.windows[0].elapsed_s, report.windows[0].goodput) == (0, None)  # the job was over before
    assert report.failures.count == 0
    assert report.failures.mttf_s is None
    assert report.failures.recovery is None
    assert report.checkpoints.daly_s is None
    assert report.since_resume == report.cumulative
    assert not report.hang.suspected


def test_a_step_that_does_not_end_is_suspected_and_an_evaluation_is_not() -> None:
    job = eventful()
    ledger = ledger_of(job.events)
    assert not make_report(ledger, now=job.clock + 10 * S).hang.suspected
    stuck = make_report(ledger, now=job.clock + 120 * S).hang
    assert (stuck.suspected, stuck.step) == (True, 700)
    assert stuck.age_s == pytest.approx(122, abs=1)
    job.log(EventCode.CUSTOM_START, "EVAL")
    assert not make_report(ledger_of(job.events), now=job.clock + 120 * S).hang.suspected


def test_a_recorded_step_end_is_no_sign_of_life() -> None:
    """With asynchronous dispatch the end of a step is recorded at once, and the program blocks after it."""
    trace = " ".join(f"{step}@{10 * step} {step}.@{10 * step + 0.01}" for step in range(20))
    ledger = ledger_of(events(f"job@0 {trace}"))
    assert not make_report(ledger, now=micros(280)).hang.suspected
    stuck = make_report(ledger, now=micros(5000)).hang
    assert (stuck.suspected, stuck.step, stuck.age_s) == (True, 19, 5000 - 190.01)
    for later in ("*eval@195-", "*eval@195-4990"):
        assert not make_report(ledger_of(events(f"job@0 {trace} {later}")), now=micros(5000)).hang.suspected
    for later in ("end@200", "job@200"):
        assert make_report(ledger_of(events(f"job@0 {trace} {later}")), now=micros(5000)).hang.step is None


def test_a_job_that_has_just_started() -> None:
    job = Story()
    job.log(EventCode.JOB_START)
    report = make_report(ledger_of(job.events), now=job.clock, windows_s=[60], devices=8, created=job.clock)
    assert report.cumulative.goodput is None
    assert report.queueing is not None
    assert report.queueing.ettr is None
    assert report.steps.count == 0
    assert from_json(json.loads(json.dumps(as_json(report), allow_nan=False))) == report


def test_a_log_without_job_start_begins_with_its_first_event(story: Story) -> None:
    events = [event for event in story.events if event.code is not EventCode.JOB_START]
    report = make_report(ledger_of(events), now=story.clock)
    assert not report.start_told
    assert report.started == report.cumulative.start == events[0].t / 1e6


@pytest.mark.parametrize("document", [{}, {"v": 2}, {"v": 1}, {"v": 1, "name": 3}])
def test_other_documents_are_rejected(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a goodput report"):
        from_json(document)


@given(st.data())
def test_the_parts_of_any_report_add_up(data: st.DataObject) -> None:
    events = data.draw(logs())
    now = data.draw(moments(events))
    ledger = ledger_of(events)
    report = make_report(ledger, now=now, windows_s=[5, 60], devices=8, created=START - 3600 * S)
    stretches = [report.cumulative, report.since_resume, *report.windows, *(each.stretch for each in report.attempts)]
    assert all(micros_of(stretch) == 0 for stretch in stretches)
    for each in report.disruptions:
        phases = each.recovery
        parts = phases.detect_s + phases.reschedule_s + phases.init_s + phases.restore_s + phases.first_step_s
        assert parts + phases.rest_s == pytest.approx(phases.total_s)
        assert min(phases.detect_s, phases.reschedule_s, phases.rest_s) >= 0
    for old_keys in (True, False):
        document = json.loads(json.dumps(as_json(report, old_keys=old_keys), allow_nan=False))
        assert from_json(document) == report


def test_keys_are_those_of_runs_and_the_keys_of_before_stay_beside_them(report: GoodputReport) -> None:
    document, old = as_json(report, old_keys=False), as_json(report)
    cumulative = document["cumulative"]
    assert cumulative["startTime"] == "2026-09-21T14:13:20.000000Z"
    assert cumulative["elapsedSeconds"] == report.cumulative.elapsed_s
    assert document["disruptions"][0]["wastedSeconds"] == report.disruptions[0].wasted_s
    assert old["disruptions"][0]["wasted_s"] == report.disruptions[0].wasted_s
    assert (old["v"], old["cumulative"]["start"]) == (1, report.cumulative.start)
    assert "_s" not in "".join(keys_of(document))
    assert keys_of(document) < keys_of(old)


def keys_of(value: object) -> set[str]:
    """Return the keys of a document, without those of its maps by cause."""
    if isinstance(value, list):
        return {key for each in value for key in keys_of(each)}
    if not isinstance(value, dict):
        return set()
    return {str(key) for key in value if str(key).upper() != key} | {
        key for each in value.values() for key in keys_of(each)
    }


@given(st.data())
def test_losses_are_counted_once_and_are_not_productive(data: st.DataObject) -> None:
    events = data.draw(logs() | jobs(attempts=6).map(lambda job: job.events))
    now = data.draw(moments(events))
    ledger = ledger_of(events)
    account, disruptions = ledger.account(now), ledger.disruptions(now)
    wasted = account.unproductive.get(Bucket(BadputType.WASTED_PROGRESS_FROM_DISRUPTION), 0)
    assert sum(each.wasted for each in disruptions) == wasted
    recovery = 0
    for each, following in zip_longest(disruptions, disruptions[1:]):
        until = account.end if each.resumed is None else each.resumed
        assert ledger.account(now, start=each.lost, end=until).productive == 0
        assert each.recovered >= until - each.lost
        assert each.lost + each.recovered <= (following.lost if following else account.end)
        recovery += each.recovered
    assert account.productive + wasted + recovery <= account.elapsed


def micros_of(stretch: TimeBreakdown) -> int:
    """Return the difference of the parts from the whole, in microseconds."""
    parts = [stretch.productive_s, *stretch.unproductive_s.values()]
    return sum(round(part * 1e6) for part in parts) - round(stretch.elapsed_s * 1e6)


def test_a_report_of_an_earlier_version_is_read_without_the_later_keys(report: GoodputReport) -> None:
    document = as_json(report)
    for key in ("start_up_s", "startUpSeconds", "stopped", "corrected"):
        del document[key]
    for each in document["disruptions"]:
        del each["message"]
    assert from_json(document) == report
