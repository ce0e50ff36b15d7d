from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import orjson
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.report.cluster_record import ClusterRecord
from mldiagnostics_api.runs.artifacts import record_names_run
from mldiagnostics_api.runs.cluster_record import MAX_RECORDED, cluster_record, last_change, merged_record
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt, RunStartUp

CREATED = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)
RUN = "f" * 64


def at(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


def status(*attempts: RunAttempt) -> MLRunStatus:
    return MLRunStatus(attempts=list(attempts) or None)


def test_a_run_without_start_up_and_causes_has_no_record() -> None:
    assert cluster_record(RUN, "ml", status()) is None
    assert cluster_record(RUN, "ml", status(RunAttempt(attempt=0, start_time=CREATED))) is None


def test_the_goodput_reports_read_the_record() -> None:
    milestones = RunStartUp(
        created_time=CREATED,
        admitted_time=at(30),
        scheduled_time=at(40),
        pulled_time=at(100),
        started_time=at(101),
        first_step_time=at(120),
    )
    lost = RunAttempt(
        attempt=0, end_time=at(900), cause="NodeLost", cause_message="node 'n1': is gone", start_up=milestones
    )
    starting = RunAttempt(attempt=1, start_up=RunStartUp(created_time=at(900), admitted_time=at(910)))
    record = ClusterRecord.parse(json.dumps(cluster_record(RUN, "ml", status(lost, starting))).encode())
    assert record.created == CREATED.timestamp() * 1e6
    first, second = record.attempts
    assert (first.ended, first.cause, first.message) == (at(900).timestamp() * 1e6, "node lost", "node 'n1': is gone")
    assert first.start_up_s == {"queueing": 30, "scheduling": 10, "pull": 60, "startup": 20}
    assert (second.ended, dict(second.start_up_s)) == (None, {})  # it still starts
    assert record.start_up_s == first.start_up_s
    assert record_names_run(cluster_record(RUN, "ml", status(lost)), RUN, "ml", "any")


@given(st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(["NodeLost", "Quota"])), max_size=40))
def test_a_record_keeps_the_attempts_that_left_the_status(ends: list[tuple[int, str]]) -> None:
    known: dict[int, str] = {}
    record = merged_record({}, {"v": 1, "runId": RUN, "attempts": []})
    for number, cause in ends:
        newer = cluster_record(RUN, "ml", status(RunAttempt(attempt=number, end_time=at(number), cause=cause)))
        assert newer
        record = merged_record(record, newer)
        known[number] = cause
        assert record["attempts"][-1]["attempt"] == max(known)
    assert [each["attempt"] for each in record["attempts"]] == sorted(known)[-MAX_RECORDED:]


def test_an_interrupted_attempt_keeps_both_its_parts() -> None:
    first = RunAttempt(attempt=0, start_time=at(0))
    ended = first.model_copy(update={"end_time": at(50), "cause": "Preemption"})
    resumed = RunAttempt(attempt=0, start_time=at(90), end_time=at(100), cause="NodeLost")
    record = merged_record({}, {"v": 1, "runId": RUN, "attempts": [{"attempt": 0}]})  # of an operator before
    for attempts in ((ended,), (ended, resumed), (resumed,)):
        newer = cluster_record(RUN, "ml", status(*attempts))
        assert newer
        record = merged_record(record, newer)
    parsed = ClusterRecord.parse(json.dumps(record).encode())
    assert [attempt.cause for attempt in parsed.attempts] == ["preemption", "node lost"]


KNOWN = ("ended", "cause", "message", "startUpSeconds", "queueing", "created")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["attempt", "started", *KNOWN, "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_a_record_that_a_user_wrote_changes_no_newer_attempt(attempts: object) -> None:
    newer = cluster_record(RUN, "ml", status(RunAttempt(attempt=3, start_time=at(5), end_time=at(9), cause="Quota")))
    assert newer
    record = merged_record({"v": 1, "runId": RUN, "attempts": attempts}, newer)
    assert [each for each in record["attempts"] if each.get("cause") == "quota"] == newer["attempts"]
    assert (record["runId"], record["namespace"]) == (RUN, "ml")


@given(st.dictionaries(st.sampled_from([*KNOWN, "namespace", "x"]), JSON_VALUES), st.lists(JSON_VALUES, max_size=3))
def test_a_merged_record_has_known_parts_of_the_right_type_alone(
    others: dict[str, object], extra: list[object]
) -> None:
    newer = cluster_record(RUN, "ml", status(RunAttempt(attempt=3, start_time=at(5), end_time=at(9), cause="Quota")))
    assert newer
    parts = dict.fromkeys((*KNOWN, "x"), extra[0] if extra else 1.5)
    of_user = {"v": 1, "runId": RUN, "attempts": [{"attempt": 0, **parts}, *extra], **others}
    record = merged_record(of_user, newer)
    assert set(record) <= {"v", "runId", "namespace", "created", "attempts"}
    for attempt in record["attempts"]:
        assert set(attempt) <= {"attempt", "started", "ended", "cause", "message", "startUpSeconds"}
    ClusterRecord.parse(orjson.dumps(record))
    assert merged_record(record, newer) == record


def test_nothing_nested_in_a_file_of_a_user_is_kept() -> None:
    nested: list[object] = []
    for _ in range(300):
        nested = [nested]
    newer = cluster_record(RUN, "ml", status(RunAttempt(attempt=3, end_time=at(9), cause="Quota")))
    assert newer
    known = {"attempt": 0, "ended": 4.5, "cause": "quota", "message": "m", "startUpSeconds": {"pull": 2}}
    hostile = known | {"x": nested, "startUpSeconds": {"pull": 2, "queueing": nested, "x": nested}}
    record = merged_record({"v": 1, "runId": RUN, "created": 7, "x": nested, "attempts": [hostile]}, newer)
    assert orjson.loads(orjson.dumps(record)) == {**newer, "created": 7, "attempts": [known, *newer["attempts"]]}


def test_the_last_change_is_the_latest_time_of_the_last_attempt() -> None:
    start_up = RunStartUp(created_time=at(1), first_step_time=at(40))
    attempts = [RunAttempt(attempt=0, end_time=at(900)), RunAttempt(attempt=1, start_time=at(20), start_up=start_up)]
    assert last_change(status()) is None
    assert last_change(status(attempts[0])) == at(900)
    assert last_change(status(*attempts)) == at(40)


def test_the_record_of_another_run_is_not_merged() -> None:
    newer = {"v": 1, "runId": RUN, "attempts": []}
    assert merged_record({"v": 1, "runId": "other", "attempts": [{"attempt": 0}]}, newer) == newer
    assert merged_record({"v": 2, "runId": RUN, "attempts": [{"attempt": 0}]}, newer) == newer
