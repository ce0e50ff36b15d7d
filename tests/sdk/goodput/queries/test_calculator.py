"""The peer's queries with exact accounting: right answers in its tuples, its errors, and additional queries."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError, LogUnreadable
from mldiagnostics.goodput import BadputType, GoodputCalculator, GoodputRecorder, GoodputType
from mldiagnostics.goodput.queries.results import BASE, ELASTIC
from mldiagnostics.goodput_elastic import ElasticGoodputCalculator, ElasticGoodputRecorder
from support.goodput.cases import Case, Question, cases
from support.goodput.entries import JOB, T0, Entries, Payload, at, slices, span, step, steps, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEAST = 1e-6  # per cent and seconds


def exact(*payloads: Payload, now: float, **options: Any) -> GoodputCalculator:
    return GoodputCalculator(JOB, "log", Entries(list(payloads)), clock=lambda: T0 + now, **options)


def seconds_of(calculator: GoodputCalculator) -> dict[str, float]:
    """Return what is productive and where the rest went, in seconds, by name; empty buckets left out."""
    calculator.get_job_goodput()
    details = calculator.get_job_goodput_details()
    times = {"productive": details["goodput_time"][GoodputType.TOTAL]}
    for bucket, spent in details["badput_time"].items():
        times |= spent if isinstance(spent, dict) else {bucket.name: spent}
    return {name: pytest.approx(spent, abs=LEAST) for name, spent in times.items() if spent}


def whole(breakdown: dict[BadputType, float | dict[str, float]]) -> float:
    """Return the sum of a breakdown, overlay left out."""
    return sum(
        sum(share.values()) if isinstance(share, dict) else share
        for bucket, share in breakdown.items()
        if bucket is not BadputType.DATA_LOADING_ASYNC
    )


RESTARTED = [
    at("job_start_time", 0),
    *span("tpu_init", 0, 4),
    *steps(0, [10, 30, 40, 50, 60]),
    at("job_start_time", 100),
    *span("tpu_init", 100, 105),
    *steps(3, [110, 120, 130, 140]),
    at("job_end_time", 150),
]
"""Steps 0-4, an outage, 3-6; step 0 takes 10 s more than the others."""


def test_a_restart_is_accounted_for_to_the_second() -> None:
    calculator = exact(*RESTARTED, now=500)
    assert seconds_of(calculator) == {
        "productive": 70.0,
        "PROGRAM_STARTUP": 10.0,
        "TPU_INITIALIZATION": 9.0,
        "WASTED_PROGRESS_FROM_DISRUPTION": 10.0,
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": 40.0,
        "OTHER": 11.0,
    }
    goodput, badput, max_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert goodput == pytest.approx(70 / 150 * 100)
    assert max_step == 6
    assert goodput + whole(badput) == pytest.approx(100.0)
    assert calculator.get_job_goodput_details()["disruption_count"] == 1


def test_every_base_bucket_is_there_and_elastic_ones_for_elastic_jobs() -> None:
    assert set(exact(*RESTARTED, now=500).get_job_goodput(include_badput_breakdown=True)[1]) == set(BASE)
    elastic = ElasticGoodputCalculator(JOB, "log", Entries(RESTARTED), clock=lambda: T0 + 500)
    badput = elastic.get_job_goodput(include_badput_breakdown=True)[1]
    assert set(badput) == set(BASE + ELASTIC)
    assert badput[BadputType.CUSTOM_BADPUT_EVENTS] == {}
    assert exact(*RESTARTED, now=500).get_job_goodput()[1] == {}


def test_a_bucket_that_fills_the_job_is_all_of_it() -> None:
    calculator = exact(at("job_start_time", 0), *span("tpu_init", 0, 100), now=100)
    goodput, badput, max_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert (goodput, badput[BadputType.TPU_INITIALIZATION], max_step) == (0.0, 100.0, 0)


def test_each_answer_is_as_of_its_moment() -> None:
    moments = iter([T0 + 45, T0 + 500, T0 + 125])
    calculator = GoodputCalculator(JOB, "log", Entries(RESTARTED), clock=lambda: next(moments))
    assert [calculator.get_job_goodput()[2] for _ in range(3)] == [1, 6, 3]


def judged(right: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in right.items() if name in {"productive", "elapsed", "disruptions", "excluded"}
    }


def assert_right(details: Any, right: dict[str, Any]) -> None:
    values = {
        "productive": details["goodput_time"][GoodputType.TOTAL],
        "elapsed": details["total_elapsed_time"],
        "disruptions": details["disruption_count"],
        "excluded": details["total_excluded_time"],
    }
    for name, value in judged(right).items():
        assert values[name] == pytest.approx(value, abs=LEAST), name
    buckets = {bucket.name: spent for bucket, spent in details["badput_time"].items()}
    for names, value in right.get("unproductive", {}).items():
        spent = [buckets.get(name, {} if isinstance(value, dict) else 0.0) for name in names.split("+")]
        if isinstance(value, dict):
            assert spent == [pytest.approx(value, abs=LEAST)]
        else:
            assert math.fsum(spent) == pytest.approx(value, abs=LEAST), names


WHOLE_JOB = [
    (case, question)
    for case in cases()
    for question in case.questions
    if question.op in {"get_job_goodput", "get_job_goodput_with_exclusions"}
]


@pytest.mark.parametrize(("case", "question"), WHOLE_JOB, ids=lambda value: getattr(value, "name", None) or value.op)
def test_each_worked_trace_is_answered_rightly(case: Case, question: Question) -> None:
    kind = ElasticGoodputCalculator if case.elastic else GoodputCalculator
    calculator = kind(JOB, "log", case.reader(question.now), clock=lambda: question.now)
    if question.exclusions:
        windows = [
            (datetime.fromtimestamp(start, timezone.utc), datetime.fromtimestamp(end, timezone.utc))
            for start, end in question.exclusions
        ]
        goodput, badput, *_ = calculator.get_job_goodput_with_exclusions(windows, include_badput_breakdown=True)
    else:
        goodput, badput, _ = calculator.get_job_goodput(include_badput_breakdown=True)
    assert goodput + whole(badput) == pytest.approx(100.0)
    right = question.right or (question.peer["seconds"] if case.verdict in {"agree", "convention"} else None)
    assert right is not None, "a trace without an answer proves nothing"
    assert_right(calculator.get_job_goodput_details(), right)


# Windows


def test_a_window_is_cut_from_the_same_timeline() -> None:
    calculator = exact(*RESTARTED, now=500)
    goodput, badput, max_step, elapsed, disruptions = calculator.get_job_goodput_interval(utc(55), utc(115))
    assert (elapsed, max_step, disruptions) == (60.0, 2, 1)
    assert goodput + whole(badput) == pytest.approx(100.0)
    shares = {bucket.name: share * 0.6 for bucket, share in badput.items() if isinstance(share, float) and share}
    assert shares["INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"] == pytest.approx(40.0)
    assert calculator.get_interval_metric_details(utc(55), utc(115)) == {
        "interval_goodput": {GoodputType.TOTAL: goodput},
        "interval_badput": badput,
        "interval_size": 60,
    }


def test_windows_add_up() -> None:
    calculator = exact(*RESTARTED, now=500)
    parts = [calculator.get_job_goodput_interval(utc(start), utc(start + 30)) for start in range(0, 150, 30)]
    productive = sum(part[0] * part[3] / 100 for part in parts)
    assert productive == pytest.approx(70.0)


def test_a_window_without_a_zone_is_utc() -> None:
    calculator = exact(*RESTARTED, now=500)
    naive = (utc(55).replace(tzinfo=None), utc(115).replace(tzinfo=None))
    assert calculator.get_job_goodput_interval(*naive) == calculator.get_job_goodput_interval(utc(55), utc(115))


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ((None, utc(5)), "a bound is missing"),
        ((utc(5), None), "a bound is missing"),
        ((utc(5), utc(5)), "does not end after its start"),
        ((utc(9), utc(5)), "does not end after its start"),
        ((utc(-50), utc(-5)), "no entries in the window"),
        ((utc(151), utc(400)), "no entries in the window"),
    ],
)
def test_a_window_that_has_no_answer_is_an_error(window: tuple[Any, Any], message: str) -> None:
    calculator = exact(*RESTARTED, now=500)
    with pytest.raises(ValueError, match=message):
        calculator.get_job_goodput_interval(*window)
    details = calculator.get_interval_metric_details(*window)
    assert (details["interval_goodput"], details["interval_badput"]) == ({}, {})


def test_a_hang_is_seen_in_its_window() -> None:
    calculator = exact(at("job_start_time", 0), *steps(0, [0, 10, 20, 30]), now=5000)
    goodput, badput, _, elapsed, _ = calculator.get_job_goodput_interval(utc(4000), utc(5000))
    assert (goodput, badput[BadputType.OTHER], elapsed) == (0.0, 100.0, 1000.0)


# Exclusions


def test_excluded_time_is_removed_once_whatever_it_covers() -> None:
    calculator = exact(*RESTARTED, now=500)
    windows = [(utc(0), utc(2)), (utc(45), utc(105)), (utc(-100), utc(1)), (utc(600), utc(700))]
    goodput, badput, max_step, excluded = calculator.get_job_goodput_with_exclusions(
        windows, include_badput_breakdown=True
    )
    assert (excluded, max_step) == (62.0, 6)
    assert goodput + whole(badput) == pytest.approx(100.0)
    details = calculator.get_job_goodput_details()
    assert (details["total_elapsed_time"], details["total_excluded_time"]) == (88.0, 62.0)
    assert details["goodput_time"][GoodputType.TOTAL] == pytest.approx(65.0)
    assert calculator.get_job_goodput()[0] == pytest.approx(70 / 150 * 100), "an exclusion is forgotten"


def test_nothing_left_is_no_answer() -> None:
    calculator = exact(*RESTARTED, now=500)
    assert calculator.get_job_goodput_with_exclusions([(utc(0), utc(500))]) == (0.0, {}, 6, 150.0)


# Steps


def test_deviations_are_from_the_ideal_or_from_what_is_configured() -> None:
    calculator = exact(at("job_start_time", 0), *steps(0, [0, 2, 4, 6, 11, 13]), now=13)
    assert calculator.get_step_deviation() == {step: pytest.approx(3.0 if step == 3 else 0.0) for step in range(5)}
    assert calculator.get_step_deviation(configured_ideal_step_time=1.5)[3] == pytest.approx(3.5)
    calculator.get_job_goodput()
    assert calculator.get_job_goodput_details()["ideal_step_time"] == pytest.approx(2.0)
    calculator.get_job_goodput(configured_ideal_step_time=1.5)
    details = calculator.get_job_goodput_details()
    assert (details["ideal_step_time"], details["step_time_deviation"][0]) == (1.5, pytest.approx(0.5))


def test_events_inside_a_step_are_not_its_time() -> None:
    evaluation = span("custom_badput_event", 3, 9, custom_badput_event_type="eval")
    calculator = exact(at("job_start_time", 0), *steps(0, [0, 2]), *evaluation, *steps(2, [10, 12, 14]), now=14)
    assert calculator.get_step_deviation() == {step: pytest.approx(0.0) for step in range(4)}


def test_short_steps_have_an_ideal_too() -> None:
    calculator = exact(at("job_start_time", 0), *steps(0, [0, 0.1, 0.2, 0.3]), now=1)
    assert calculator.get_step_deviation() == {step: pytest.approx(0.0, abs=LEAST) for step in range(3)}


def test_without_a_step_that_ended_there_is_no_deviation() -> None:
    with pytest.raises(ValueError, match="no step times"):
        exact(at("job_start_time", 0), step(0, 1), now=9).get_step_deviation()


# Details


def test_before_any_query_details_are_empty() -> None:
    details = exact(*RESTARTED, now=500).get_job_goodput_details()
    assert details == {
        "goodput_time": {},
        "badput_time": {},
        "max_productive_step": 0,
        "total_elapsed_time": 0.0,
        "disruption_count": 0,
        "step_time_deviation": {},
        "ideal_step_time": 0.0,
        "total_excluded_time": 0.0,
    }


def test_elastic_details_tell_how_many_slices_worked() -> None:
    entries = [at("job_start_time", 0), slices(0, 4), slices(50, 2), *steps(0, [0, 10, 20]), at("job_end_time", 100)]
    calculator = ElasticGoodputCalculator(JOB, "log", Entries(entries), clock=lambda: T0 + 500)
    assert "stepping_slice_efficiency" not in calculator.get_job_goodput_details()
    calculator.get_job_goodput()
    details = calculator.get_job_goodput_details()
    assert details["stepping_slice_efficiency"] == pytest.approx(0.75)
    assert details["available_slice_efficiency"] == pytest.approx(1.0)
    window = calculator.get_interval_metric_details(utc(40), utc(60))
    assert window["stepping_slice_efficiency"] == pytest.approx(0.75)
    none = ElasticGoodputCalculator(JOB, "log", Entries(RESTARTED), clock=lambda: T0 + 500)
    none.get_job_goodput()
    assert "stepping_slice_efficiency" not in none.get_job_goodput_details()


def test_an_elastic_wait_counts_while_it_lasts() -> None:
    wait = at("elastic_wait_start_time", 30, elastic_wait_event_type="elastic_slice_down")
    calculator = ElasticGoodputCalculator(
        JOB, "log", Entries([at("job_start_time", 0), *steps(0, [0, 10, 20]), wait]), clock=lambda: T0 + 130
    )
    badput = calculator.get_job_goodput(include_badput_breakdown=True)[1]
    assert badput[BadputType.ELASTIC_SLICE_DOWN] == pytest.approx(100 / 130 * 100)


# The content of the log


def test_what_was_not_believed_is_listed() -> None:
    broken = [{"job_name": JOB, "step_count": "x", "step_start_time": T0}, at("tpu_init_end_time", 200)]
    calculator = exact(*RESTARTED, *broken, {"job_name": "another", "job_end_time": T0 + 3}, now=500)
    assert calculator.get_job_goodput()[2] == 6
    assert calculator.ignored["bad step"] == 1
    assert sum(calculator.ignored.values()) == 2


def test_runs_under_one_name_are_distinguished() -> None:
    second = [at("job_start_time", 1000), *steps(0, [1000, 1010, 1020]), at("job_end_time", 1030)]
    entries = Entries([*RESTARTED, *second])
    calculator = GoodputCalculator(JOB, "log", entries, clock=lambda: T0 + 2000)
    assert len(calculator.runs) == 2
    assert calculator.get_job_goodput()[2] == 2
    first = GoodputCalculator(JOB, "log", entries, clock=lambda: T0 + 2000, run=calculator.runs[0])
    assert first.get_job_goodput()[2] == 6
    nobody = GoodputCalculator(JOB, "log", entries, clock=lambda: T0 + 2000, run="nobody")
    with pytest.raises(Exception, match="nobody"):
        nobody.get_job_goodput()


@pytest.mark.parametrize("payloads", [[], steps(0, [0, 10]), [at("job_start_time", 900)]])
def test_without_a_start_there_is_no_answer(payloads: list[Payload]) -> None:
    calculator = exact(*payloads, now=500)
    with pytest.raises(ValueError, match="total job time is 0"):
        calculator.get_job_goodput()
    assert calculator.get_job_goodput_details()["total_elapsed_time"] == 0.0


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    calculator = GoodputCalculator(JOB, "log", log=tmp_path / "nowhere")
    with pytest.raises(LogUnreadable, match="nowhere"):
        calculator.get_job_goodput()


def test_a_calculator_elsewhere_finds_the_log_by_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True)
    begin = datetime.now(timezone.utc) - timedelta(seconds=60)
    recorder.record_job_start_time(begin)
    for index in range(4):
        recorder.record_step_start_time(index, begin + timedelta(seconds=10 + 10 * index))
    recorder.flush()
    calculator = GoodputCalculator("job", "goodput_job", clock=(begin + timedelta(seconds=50)).timestamp)
    assert calculator.get_job_goodput()[0] == pytest.approx(60.0, abs=1e-3)
    recorder.record_job_end_time(begin + timedelta(seconds=45))
    recorder.close()
    assert calculator.get_job_goodput() == (pytest.approx(35 / 45 * 100, abs=1e-3), {}, 3)


def test_one_object_may_be_written_and_read(tmp_path: Path) -> None:
    entries = Entries()
    recorder = ElasticGoodputRecorder(JOB, "log", logging_enabled=True, cloud_logger=entries)
    recorder.record_job_start_time(utc(0))
    recorder.record_elastic_slice_counts(3, 4, 4, utc(0))
    recorder.record_step_start_time(0, utc(0))
    recorder.record_step_start_time(1, utc(10))
    calculator = ElasticGoodputCalculator(JOB, "log", entries, clock=lambda: T0 + 20, cache_dir=tmp_path)
    assert calculator.get_job_goodput() == (50.0, {}, 0)


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads that give way to each other everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless_threads")
def test_several_threads_may_ask() -> None:
    for _ in range(5):
        entries = Entries([at("job_start_time", 0)])
        calculator = GoodputCalculator(JOB, "log", entries, clock=lambda: T0 + 1000)

        def ask(number: int, entries: Entries = entries, calculator: GoodputCalculator = calculator) -> float:
            eval_ = span("custom_badput_event", number + 0.6, number + 0.7, custom_badput_event_type="eval")
            entries.payloads += [*span("data_loading", number, number + 0.2), step(number, number + 0.5), *eval_]
            return calculator.get_job_goodput(include_badput_breakdown=True)[0]

        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(ask, range(1, 200)))
        assert min(answers) >= 0.0
        result = calculator.get_job_goodput(include_badput_breakdown=True)
        assert result == exact(*entries.payloads, now=1000).get_job_goodput(include_badput_breakdown=True)


# Arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"job_name": 3}, TypeError, "job_name=3: not a string"),
        ({"job_name": ""}, ConfigurationError, "job_name: empty"),
        ({"logger_name": None}, TypeError, "logger_name=None: not a string"),
        ({"cloud_logger": Entries(), "log": "/tmp/x"}, ConfigurationError, "both name a log"),
        ({"clock": 3.0}, TypeError, "clock=3.0: not callable"),
        ({"max_logs_retention_period": "week"}, TypeError, "'week': not a length of time"),
        ({"max_logs_retention_period": 0}, ConfigurationError, ": not above 0"),
        ({"max_logs_retention_period": math.nan}, ConfigurationError, ": not above 0"),
        ({"max_logs_retention_period": -1e300}, ConfigurationError, ": not above 0"),
        ({"log": "ftp://host/log"}, ConfigurationError, "ftp://host/log"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(options: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        GoodputCalculator(**({"job_name": JOB, "logger_name": "log"} | options))


@pytest.mark.parametrize("moment", [None, datetime.now(timezone.utc), math.nan, -1.0, T0 * 1000])
def test_a_clock_that_does_not_tell_seconds_is_refused(moment: Any) -> None:
    calculator = GoodputCalculator(JOB, "log", Entries(RESTARTED), clock=lambda: moment)
    for ask in (calculator.get_job_goodput, lambda: calculator.get_interval_metric_details(utc(0), utc(5))):
        with pytest.raises(TypeError, match="must return POSIX seconds"):
            ask()


def test_a_calculator_says_which_log_it_reads(tmp_path: Path) -> None:
    calculator = GoodputCalculator(JOB, "log", log=tmp_path, cache_dir=tmp_path)
    assert repr(calculator) == f"<GoodputCalculator of {tmp_path}>"


@pytest.mark.parametrize("retention", [7 * 24 * 3600, timedelta(days=7)])
def test_retention_is_seconds_or_a_length_of_time(retention: float | timedelta) -> None:
    query: list[datetime] = []

    class Reader:
        def read_cloud_logging_entries(self, start_time: datetime, end_time: datetime) -> list[Payload]:
            query.extend((start_time, end_time))
            return RESTARTED

    now = T0 + 500
    GoodputCalculator(JOB, "log", Reader(), max_logs_retention_period=retention, clock=lambda: now).get_job_goodput()
    assert [each.timestamp() for each in query] == [now - 7 * 24 * 3600, now]


@pytest.mark.parametrize("retention", [1e11, 1e300, math.inf, timedelta.max])
def test_a_retention_longer_than_all_logs_is_all(retention: float | timedelta) -> None:
    assert exact(*RESTARTED, now=500, max_logs_retention_period=retention).get_job_goodput()[2] == 6


def test_a_report_has_everything() -> None:
    report = exact(*RESTARTED, now=500).report(windows_s=[60], exclude=[(utc(0), utc(5))], devices=8)
    assert report.cumulative.productive_s == pytest.approx(70.0)
    assert (len(report.disruptions), report.run, report.runs, report.ignored) == (1, "1", ("1",), {})


def test_times_of_another_kind_are_refused() -> None:
    calculator = exact(*RESTARTED, now=500)
    wrong: Any = T0
    with pytest.raises(TypeError, match="not datetimes"):
        calculator.get_job_goodput_interval(wrong, utc(5))
    with pytest.raises(TypeError, match="not datetimes"):
        calculator.get_job_goodput_with_exclusions([(wrong, utc(5))])


class ByTheEventsTime:
    """A log in memory that compares bounds with the times in its entries, as tests of simulated jobs have them."""

    def __init__(self) -> None:
        self.entries: list[tuple[datetime, Payload]] = []

    def write_cloud_logging_entry(self, entry: Payload) -> None:
        moment = next(value for key, value in entry.items() if "time" in key)
        self.entries.append((datetime.fromtimestamp(moment, timezone.utc), entry))

    def read_cloud_logging_entries(self, start: datetime | None = None, end: datetime | None = None) -> list[Payload]:
        known = [(t, entry) for t, entry in self.entries if start is None or t > start]
        return [entry for t, entry in known if end is None or t <= end]


def test_a_job_that_ends_later_than_the_time_of_day_has_ended() -> None:
    log, start = ByTheEventsTime(), datetime.now(timezone.utc)
    recorder = GoodputRecorder(JOB, "log", logging_enabled=True, cloud_logger=log)
    recorder.record_job_start_time(start)
    for index in range(5):
        recorder.record_step_start_time(index, start + timedelta(minutes=1 + index))
    recorder.record_job_end_time(start + timedelta(minutes=6))
    simulated = GoodputCalculator(JOB, "log", log)
    assert simulated.get_job_goodput()[::2] == (pytest.approx(100 * 5 / 6), 4)
    assert simulated.get_job_goodput_interval(start, start + timedelta(hours=1))[3] == pytest.approx(360)
    assert simulated.report().cumulative.elapsed_s == pytest.approx(360)
    replayed = GoodputCalculator(JOB, "log", log, clock=lambda: start.timestamp() + 150)
    assert replayed.get_job_goodput()[::2] == (pytest.approx(100 * 60 / 150), 0)


class ByTheEventsTimeWithCursor(ByTheEventsTime):
    """A log that returns where its answer ends, as ml-goodput-measurement's readers do: `end` of the last entry."""

    def __init__(self, end: Callable[[datetime], datetime] = lambda t: t) -> None:
        super().__init__()
        self._end = end

    def read_cloud_logging_entries(  # type: ignore[override]
        self, start: datetime | None = None, end: datetime | None = None, last: object = None
    ) -> tuple[list[Payload], object]:
        del last
        entries = super().read_cloud_logging_entries(start, end)
        if not entries:
            return [], (None, None)
        return entries, (self._end(next(t for t, entry in self.entries if entry is entries[-1])), "id")


@pytest.mark.parametrize(
    "log",
    [ByTheEventsTime(), ByTheEventsTimeWithCursor(), ByTheEventsTimeWithCursor(lambda _: datetime.now(timezone.utc))],
    ids=["without a cursor", "with a cursor", "with a cursor of the time of day"],
)
@pytest.mark.parametrize("shift", [-2 * 86_400, 2 * 86_400], ids=["back-dated", "ahead"])
def test_a_second_query_gives_the_answer_of_a_new_calculator(log: ByTheEventsTime, shift: float) -> None:
    log.entries.clear()
    start = datetime.now(timezone.utc) + timedelta(seconds=shift)
    recorder = GoodputRecorder(JOB, "log", logging_enabled=True, cloud_logger=log)
    recorder.record_job_start_time(start)
    recorder.record_step_start_time(0, start + timedelta(minutes=1))
    warm = GoodputCalculator(JOB, "log", log)
    with suppress(ValueError):  # it has not begun
        warm.get_job_goodput()
    for index in range(1, 40):
        recorder.record_step_start_time(index, start + timedelta(minutes=1 + index))
        if index == 20:
            recorder.record_custom_badput_event_start_time(start + timedelta(minutes=20.5), "EVAL")
            recorder.record_custom_badput_event_end_time(start + timedelta(minutes=20.75), "EVAL")
            with suppress(ValueError):
                warm.get_job_goodput()
    recorder.record_job_end_time(start + timedelta(minutes=50))
    result = warm.get_job_goodput(include_badput_breakdown=True)
    assert result[0] > 50
    assert result == GoodputCalculator(JOB, "log", log).get_job_goodput(include_badput_breakdown=True)
    assert warm.ignored == {}
