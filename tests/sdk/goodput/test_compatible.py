"""`accounting="compatible"`: the figures of ml-goodput-measurement 0.2.3, faults included."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput import BadputType, GoodputCalculator, GoodputRecorder
from mldiagnostics.goodput_elastic import ElasticGoodputCalculator
from support.goodput_cases import Case, Question, cases
from support.goodput_entries import JOB, T0, Entries, at, slices, span, step, utc

if TYPE_CHECKING:
    from pathlib import Path


def plain(value: Any) -> Any:
    """Make what a query returned comparable to JSON: names for enumerations, texts for steps."""
    if isinstance(value, dict):
        return {getattr(key, "name", str(key)): plain(item) for key, item in value.items()}
    return value


def asked(case: Case, question: Question, accounting: str) -> dict[str, Any]:
    """Return the answer to a question, in the words of the cases."""
    kind = ElasticGoodputCalculator if case.elastic else GoodputCalculator
    calculator = kind(
        JOB, "log", cloud_logger=case.reader(question.now), clock=lambda: question.now, accounting=accounting
    )
    if question.op == "get_job_goodput":
        names = ("goodput", "badput_percent", "max_productive_step")
        return dict(zip(names, plain_all(calculator.get_job_goodput(include_badput_breakdown=True)), strict=True))
    if question.op == "get_job_goodput_interval":
        assert question.window is not None
        names = ("goodput", "badput_percent", "max_productive_step", "elapsed", "disruptions")
        answer = calculator.get_job_goodput_interval(*map(_utc, question.window))
        return dict(zip(names, plain_all(answer), strict=True))
    if question.op == "get_job_goodput_with_exclusions":
        windows = [(_utc(start), _utc(end)) for start, end in question.exclusions]
        names = ("goodput", "badput_percent", "max_productive_step", "excluded")
        answer = calculator.get_job_goodput_with_exclusions(windows, include_badput_breakdown=True)
        return dict(zip(names, plain_all(answer), strict=True))
    assert question.op == "get_job_goodput_details"
    calculator.get_job_goodput(include_badput_breakdown=True)
    return dict(plain(calculator.get_job_goodput_details()))


def _utc(t: float) -> datetime:
    return datetime.fromtimestamp(t, UTC)


def plain_all(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(plain, values))


def close(ours: Any, theirs: Any, *, within: float = 1e-6) -> bool:
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(close(ours[key], theirs[key], within=within) for key in theirs)
    return bool(ours == pytest.approx(theirs, abs=within))


QUESTIONS = [(case, question) for case in cases() for question in case.questions]


@pytest.mark.parametrize(("case", "question"), QUESTIONS, ids=lambda value: getattr(value, "name", None) or value.op)
def test_each_answer_is_the_peers(case: Case, question: Question) -> None:
    ours = asked(case, question, "compatible")
    theirs = {key: value for key, value in question.peer.items() if key != "seconds"}
    assert close({key: ours[key] for key in theirs}, theirs), (ours, theirs)
    if "disruptions" in ours:
        assert ours["disruptions"] == question.peer["seconds"]["disruptions"]


def compatible(*payloads: dict[str, Any], now: float = 1000.0, elastic: bool = False) -> GoodputCalculator:
    kind = ElasticGoodputCalculator if elastic else GoodputCalculator
    return kind(JOB, "log", Entries(list(payloads)), clock=lambda: T0 + now, accounting="compatible")


def test_a_restart_at_the_first_step_loses_the_waste() -> None:
    calculator = compatible(
        at("job_start_time", 0), step(0, 10), step(1, 20), step(2, 30), at("job_start_time", 50), step(0, 60)
    )
    goodput, badput, max_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert (goodput, max_step) == (0.0, 0)
    assert badput[BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION] == pytest.approx(2.0)
    assert badput[BadputType.WASTED_PROGRESS_FROM_DISRUPTION] == 0.0


def test_progress_that_was_kept_hides_the_outage() -> None:
    calculator = compatible(
        *(at("job_start_time", 0), step(0, 0), step(1, 10), step(2, 20), at("job_start_time", 900)),
        *(step(3, 920), step(4, 930), at("job_end_time", 940)),
        now=2000,
    )
    assert calculator.get_job_goodput()[0] == pytest.approx(100.0)


def test_a_bucket_that_fills_the_job_is_told_as_nothing() -> None:
    calculator = compatible(at("job_start_time", 0), *span("tpu_init", 0, 100), now=100)
    assert calculator.get_job_goodput(include_badput_breakdown=True)[1][BadputType.TPU_INITIALIZATION] == 0.0


def test_what_was_not_closed_or_not_opened_is_nothing() -> None:
    calculator = compatible(
        at("job_start_time", 0),
        at("tpu_init_end_time", 5),
        at("training_prep_start_time", 5),
        at("custom_badput_event_start_time", 10, custom_badput_event_type="eval"),
        step(0, 20),
        now=100,
    )
    badput = calculator.get_job_goodput(include_badput_breakdown=True)[1]
    assert badput[BadputType.OTHER] == 0.0  # it fills the job
    assert badput[BadputType.CUSTOM_BADPUT_EVENTS] == {}


def test_more_saving_than_stepping_is_an_error() -> None:
    save = {"job_name": JOB, "event_type": "save", "step": 1, "directory": "gs://b"}
    calculator = compatible(
        at("job_start_time", 0), step(0, 10), step(1, 12), save | {"checkpoint_manager_blocking_duration_secs": 30.0}
    )
    with pytest.raises(ValueError, match=r"productive time -28\.0 s is not within"):
        calculator.get_job_goodput()


@pytest.mark.parametrize(
    ("broken", "error"),
    [({"directory": None}, AttributeError), ({"checkpoint_manager_blocking_duration_secs": None}, TypeError)],
)
def test_null_values_break_it(broken: dict[str, Any], error: type[Exception]) -> None:
    save = {"job_name": JOB, "event_type": "save", "step": 1, "directory": "gs://b"}
    entry = save | {"checkpoint_manager_blocking_duration_secs": 3.0} | broken
    with pytest.raises(error):
        compatible(at("job_start_time", 0), step(0, 10), entry).get_job_goodput()


def test_an_event_without_its_type_breaks_it() -> None:
    with pytest.raises(KeyError):
        compatible(at("job_start_time", 0), at("custom_badput_event_start_time", 5)).get_job_goodput()


def test_without_a_start_there_is_no_answer() -> None:
    with pytest.raises(ValueError, match="total job time is 0"):
        compatible(step(0, 10), step(1, 20)).get_job_goodput()
    assert compatible(step(0, 10)).get_job_goodput_with_exclusions([]) == (0.0, {}, 0, 0.0)


def test_a_window_is_as_long_as_its_entries() -> None:
    calculator = compatible(at("job_start_time", 0), step(0, 10), step(1, 20), step(2, 30), step(3, 40))
    answer = calculator.get_job_goodput_interval(utc(15), utc(900))
    assert (answer[0], answer[2], answer[3]) == (pytest.approx(100.0), 2, pytest.approx(20.0))
    details = calculator.get_interval_metric_details(utc(500), utc(900))
    assert details == {"interval_goodput": {}, "interval_badput": {}, "interval_size": 400}


def test_excluded_windows_come_out_of_phases_steps_and_recovery() -> None:
    calculator = compatible(
        at("job_start_time", 0),
        *span("tpu_init", 0, 10),
        *span("data_loading", 10, 20),
        *(step(0, 20), step(1, 30), step(2, 40), step(3, 50)),
        *(at("job_start_time", 100), step(2, 110), step(3, 120), at("job_end_time", 130)),
    )
    windows = [(utc(5), utc(15)), (utc(60), utc(70))]
    goodput, badput, max_step, excluded = calculator.get_job_goodput_with_exclusions(
        windows, include_badput_breakdown=True
    )
    assert (excluded, max_step) == (20.0, 3)
    assert goodput == pytest.approx(40 / 110 * 100)
    seconds = {bucket.name: share * 1.1 for bucket, share in badput.items() if isinstance(share, float) and share}
    assert seconds == {
        "TPU_INITIALIZATION": pytest.approx(5.0),
        "DATA_LOADING_SYNC": pytest.approx(5.0),
        "WASTED_PROGRESS_FROM_DISRUPTION": pytest.approx(10.0),
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": pytest.approx(40.0),
        "OTHER": pytest.approx(10.0),
    }


def test_steps_below_a_second_have_no_ideal() -> None:
    calculator = compatible(at("job_start_time", 0), step(0, 0.0), step(1, 0.5), step(2, 1.0))
    with pytest.raises(ValueError, match="no ideal step time"):
        calculator.get_step_deviation()
    assert calculator.get_step_deviation(0.25) == {0: pytest.approx(0.25), 1: pytest.approx(0.25)}
    with pytest.raises(ValueError, match="no step times"):
        compatible(at("job_start_time", 0)).get_step_deviation()


def test_slices_count_from_the_first_that_is_told() -> None:
    calculator = compatible(at("job_start_time", 0), slices(50, 4), slices(75, 2), now=100, elastic=True)
    calculator.get_job_goodput()
    details: Any = calculator.get_job_goodput_details()
    assert (details["stepping_slice_efficiency"], details["available_slice_efficiency"]) == (0.375, 0.5)
    window: Any = calculator.get_interval_metric_details(utc(60), utc(80))
    assert (window["stepping_slice_efficiency"], window["available_slice_efficiency"]) == (0.875, 1.0)


def test_it_reads_what_our_recorder_writes(tmp_path: Path) -> None:
    recorder = GoodputRecorder(JOB, "log", logging_enabled=True, log=tmp_path)
    recorder.record_job_start_time(utc(0))
    for index in range(4):
        recorder.record_step_start_time(index, utc(10 + 10 * index))
    recorder.record_job_end_time(utc(50))
    recorder.close()
    calculator = GoodputCalculator(JOB, "log", log=tmp_path, clock=lambda: T0 + 500, accounting="compatible")
    assert calculator.get_job_goodput() == (pytest.approx(80.0), {}, 3)
    window = calculator.get_job_goodput_interval(utc(15), utc(45))
    assert (window[0], window[2], window[3]) == (pytest.approx(100.0), 2, pytest.approx(20.0))


def test_of_many_processes_the_first_is_believed() -> None:
    other = [payload | {"rank": 1} for payload in (step(0, 10.5), step(1, 20.5), step(0, 30))]
    mine = [payload | {"rank": 0} for payload in (at("job_start_time", 0), step(0, 10), step(1, 20), step(2, 30))]
    calculator = compatible(*mine, *other, at("job_end_time", 40, rank=0))
    calculator.get_job_goodput()
    assert calculator.get_job_goodput_details()["disruption_count"] == 0


lengths = st.integers(1, 40).map(lambda quarters: quarters / 4)  # which floats have without rounding


@given(
    st.lists(lengths, min_size=3, max_size=3), st.lists(st.tuples(lengths, lengths, lengths), min_size=2, max_size=8)
)
def test_a_job_without_trouble_is_accounted_for_alike(
    phases: list[float], work: list[tuple[float, float, float]]
) -> None:
    t = 0.0
    entries = [at("job_start_time", t)]
    for name, length in zip(("tpu_init", "training_prep", "data_loading"), phases, strict=True):
        entries += span(name, t, t := t + length)
    for index, (before, evaluation, after) in enumerate(work):
        entries += [step(index, t), *span("data_loading", t, t + before / 2)]
        entries += span("custom_badput_event", t + before, t + before + evaluation, custom_badput_event_type="eval")
        t += before + evaluation + after
    entries += [step(len(work), t), at("job_end_time", t + 1)]
    answers = [
        GoodputCalculator(
            JOB, "log", Entries(entries), clock=lambda: T0 + t + 9, accounting=accounting
        ).get_job_goodput(include_badput_breakdown=True)
        for accounting in ("exact", "compatible")
    ]
    microsecond = 100 / t * 1e-6  # exact accounting knows no fractions of one
    assert close(plain(answers[0][1]), plain(answers[1][1]), within=2 * microsecond)
    assert close(answers[0][0], answers[1][0], within=2 * microsecond)
    assert answers[0][2] == answers[1][2] == len(work)
