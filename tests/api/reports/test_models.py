from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from mldiagnostics_api.reports.models import MAX_PORTS, Answer, InvalidReport, Report, read_report

REPORT: dict[str, Any] = {"v": 1, "incarnation": "3f2a9c01", "sequence": 17, "sent": 1790000000.123}
WHOLE: dict[str, Any] = REPORT | {
    "attempt": 0,
    "rank": 3,
    "worldSize": 16,
    "host": {"name": "h", "pod": "p", "podUid": "u", "node": "n", "slice": 0},
    "profiler": {"ports": [9999], "server": "jax", "version": "0.10.2", "tensorflow": False},
    "phase": "Active",
    "reason": "",
    "message": "",
    "progress": {"step": 1200, "stepTimeSeconds": 0.21, "changed": 1790000000.0},
    "metrics": {"loss": 2.31},
    "run": {"name": "r", "group": "g", "storage": "gs://b", "started": 1790000000.0, "ended": None, "kinds": {}},
    "configs": {"software": {}, "hardware": {}, "user": {"lr": 0.1}},
    "sessions": [{"id": "s", "directory": "gs://b/r", "start": 0.0, "stop": 0.0, "state": "Done"}],
    "events": {"first": 0, "items": []},
}


def test_a_whole_report_is_read() -> None:
    report = read_report(WHOLE | {"ofALaterVersion": 1})
    assert (report.rank, report.world_size, report.host.pod_uid) == (3, 16, "u")
    assert report.progress is not None
    assert report.progress.step_time_seconds == 0.21
    assert report.configs is not None
    assert report.configs.user == {"lr": 0.1}


def test_unknown_values_may_be_null() -> None:
    assert read_report({key: WHOLE[key] if key in REPORT else None for key in WHOLE}) == read_report(REPORT)


def test_texts_for_people_are_cut_and_not_rejected() -> None:
    report = read_report(REPORT | {"message": "x" * 5000, "reason": None, "run": {"name": "\ud800" * 300}})
    assert len(report.message) == 1024
    assert report.run is not None
    assert report.run.name == "?" * 256


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"v": 2}, "v"),
        ({"incarnation": "XYZ"}, "incarnation"),
        ({"sequence": 0}, "sequence"),
        ({"sent": float("nan")}, "sent"),
        ({"rank": -1}, "rank"),
        ({"phase": "Lost"}, "phase"),
        ({"host": {"name": "h" * 300}}, "host.name"),
        ({"profiler": {"ports": [0]}}, "profiler.ports.0"),
        ({"profiler": {"ports": [1] * (MAX_PORTS + 1)}}, "profiler.ports"),
        ({"metrics": {str(n): 1.0 for n in range(MAX_METRICS + 1)}}, "metrics"),
        ({"metrics": {"loss": float("inf")}}, "metrics.loss"),
        ({"sessions": [{"id": str(n)} for n in range(MAX_SESSIONS + 1)]}, "sessions"),
        ({"events": {"first": -1}}, "events.first"),
    ],
)
def test_a_value_beyond_its_bound_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidReport, match=rf"report: {field}[.:]? ?.*send a report of version 1"):
        read_report(WHOLE | change)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(WHOLE)), json_values))
def test_any_json_is_a_report_or_rejected(changes: dict[str, Any]) -> None:
    with suppress(InvalidReport):
        report = read_report(WHOLE | changes)
        assert Report.model_validate(json.loads(report.model_dump_json(by_alias=True))) == report


@pytest.mark.parametrize("body", [None, [], "x", 1])
def test_a_body_that_is_not_an_object_is_rejected(body: object) -> None:
    with pytest.raises(InvalidReport, match="report: body"):
        read_report(body)


def test_an_answer_has_the_names_of_the_contract() -> None:
    answer = Answer(persisted_sequence=16, persisted_events=950)
    assert json.loads(answer.model_dump_json(by_alias=True)) == {
        "persistedSequence": 16,
        "persistedEvents": 950,
        "intervalSeconds": 10,
        "acceptsEvents": True,
    }
