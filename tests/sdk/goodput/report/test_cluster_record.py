"""The facts that the cluster shows of a run, joined to its account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.account import Disruption
from mldiagnostics.goodput.events.conversion import payload_of
from mldiagnostics.goodput.load_reports import ReportQuery, read
from mldiagnostics.goodput.render.table import table
from mldiagnostics.goodput.report.cluster_record import ClusterAttempt, ClusterRecord, explained, joined_cause
from support.goodput.story import S, eventful

if TYPE_CHECKING:
    from pathlib import Path

CAUSES = ("", "unknown", "exit code", "node lost", "preemption", "exception", "scale_up", "suspended")


def disruption(lost_s: int, restarted_s: int, cause: str = "unknown") -> Disruption:
    lost, restarted = lost_s * S, restarted_s * S
    numbers = dict.fromkeys(("steps_lost", "wasted", "detect", "reschedule", "init", "restore", "first_step"), 0)
    return Disruption(
        lost=lost, seen=lost, restarted=restarted, resumed=None, starts=1, cause=cause, recovered=0, **numbers
    )


def attempt(ended_s: int, cause: str = "node lost") -> ClusterAttempt:
    return ClusterAttempt(ended=ended_s * S, cause=cause, message=f"{cause} at {ended_s}")


@pytest.mark.parametrize(
    ("recorded", "shown", "joined"),
    [
        ("exception", "exit code", "exception"),
        ("unknown", "exit code", "exit code"),
        ("signal", "node lost", "node lost"),
        ("preemption", "unknown", "preemption"),
        ("preemption", "", "preemption"),
        ("scale_up", "deleted", "scale_up"),
    ],
)
def test_the_program_knows_its_own_failures_and_the_cluster_the_others(recorded: str, shown: str, joined: str) -> None:
    assert joined_cause(recorded, shown) == joined


def test_an_attempt_explains_the_disruption_in_which_it_ended() -> None:
    disruptions = [disruption(1000, 1100), disruption(5000, 5100), disruption(5150, 5200, "exception")]
    attempts = attempt(1090), attempt(3000, "eviction"), attempt(5120), attempt(5190, "exit code")
    result = explained(disruptions, ClusterRecord(attempts=attempts))
    assert [each.cause for each in result] == ["node lost", "node lost", "exception"]
    assert [each.message for each in result] == ["node lost at 1090", "node lost at 5120", ""]


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 300), st.sampled_from(CAUSES)), max_size=6),
    st.lists(st.tuples(st.integers(0, 2500), st.sampled_from(CAUSES)), max_size=6),
)
def test_the_join_changes_causes_only(
    given_disruptions: list[tuple[int, int, str]], given_attempts: list[tuple[int, str]]
) -> None:
    disruptions = [disruption(lost, lost + length, cause) for lost, length, cause in sorted(given_disruptions)]
    record = ClusterRecord(attempts=tuple(attempt(*each) for each in given_attempts))
    result = explained(disruptions, record)
    assert [each.restarted for each in result] == [each.restarted for each in disruptions]
    for before, after in zip(disruptions, result, strict=True):
        assert after.cause in {before.cause, *(cause for _, cause in given_attempts)}
        assert after.cause or not before.cause
    assert explained(disruptions, ClusterRecord()) == disruptions


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"v": 2}', b'{"v": 1}', b'{"v": 1, "attempts": [3]}', b"\xff"])
def test_another_file_is_rejected(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        ClusterRecord.parse(text)


def test_the_report_of_a_run_has_the_causes_and_the_start_up_of_the_cluster(tmp_path: Path) -> None:
    story = eventful()
    (tmp_path / "records").mkdir()
    payloads = [payload_of(event, "trainer") for event in story.events if event.code.name != "ALIVE"]
    (tmp_path / "records/trainer.jsonl").write_text("".join(json.dumps(payload) + "\n" for payload in payloads))
    [(before, _)] = read([str(tmp_path)], ReportQuery(now=story.clock))
    second = before.disruptions[1]
    stages = {"queueing": 300.0, "scheduling": 4.0, "pull": 60.0, "startup": 30.0}
    record: dict[str, Any] = {
        "v": 1,
        "runId": "any",
        "created": before.started - 400,
        "attempts": [
            {"attempt": 0, "ended": second.restarted - 10, "cause": "node lost", "message": "node 'n1': it is gone"},
            {"attempt": 1, "startUpSeconds": stages},
        ],
    }
    (tmp_path / "reported").mkdir()
    (tmp_path / "reported/cluster.json").write_text(json.dumps(record))
    [(report, _)] = read([str(tmp_path)], ReportQuery(now=story.clock))
    assert [each.cause for each in report.disruptions] == [before.disruptions[0].cause, "node lost"]
    assert report.disruptions[1].message == "node 'n1': it is gone"
    assert report.attempts[1].ended_by == "node lost"
    assert report.failures.by_cause["node lost"] == 1
    assert report.start_up_s == stages
    assert report.queueing
    assert report.queueing.queued_s == 400
    assert report.cumulative == before.cumulative  # the account itself never changes
    assert "queueing 5 min, scheduling 4 s, pull 1 min, startup 30 s" in " ".join(table(report, width=200).split())
    (tmp_path / "reported/cluster.json").write_text("{")
    [(broken, _)] = read([str(tmp_path)], ReportQuery(now=story.clock))
    assert broken == before
