from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs import FindingRow
from mldiagnostics_api.runs.row import attempts_of, findings_of, run_row_of, sessions_of

FIELDS = [
    "metadata",
    "spec",
    "status",
    "runId",
    "attempts",
    "startTime",
    "profileSessions",
    "hosts",
    "configs",
    "user",
    "findings",
    "severity",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_an_object_of_another_version_is_a_row_with_unknown_values(body: dict[str, Any]) -> None:
    row = run_row_of(body)
    assert row.phase == "Pending"
    row.to_json()
    assert all(attempt.to_json() for attempt in attempts_of(body, row))
    assert all(session.to_json() for session in sessions_of(body))
    assert all(finding.to_json() for finding in findings_of(body))


def test_findings_mark_the_session_in_which_they_are() -> None:
    finding = {"code": "SlowHost", "severity": "critical", "message": "late", "session": "b", "hosts": ["w-1"]}
    status = {"profileSessions": [{"id": "a"}, {"id": "b"}], "findings": [finding, {"severity": "fatal"}]}
    body = {"metadata": {}, "spec": {}, "status": status}
    assert findings_of(body) == [FindingRow("SlowHost", "critical", "late", "b", None, ("w-1",))]
    assert [(row.name, row.is_diagnosed) for row in sessions_of(body)] == [("a", None), ("b", True)]


def test_the_directory_of_a_run_is_that_of_its_storage_or_of_a_capture_below_the_default_root() -> None:
    def directory(spec: dict[str, Any], *captured: str, **status: str) -> str:
        sessions = [{"id": str(number), "directory": each} for number, each in enumerate(captured)]
        return run_row_of(
            {"metadata": {}, "spec": {"runId": "r", **spec}, "status": {"profileSessions": sessions, **status}}
        ).directory

    assert directory({"storageLocation": "gs://a/"}, "gs://b/r") == "gs://a/r"
    assert directory({}, "gs://b/r", "gs://elsewhere") == "gs://b/r"
    assert directory({}, "gs://one", "gs://two") == "gs://two"
    assert directory({}) == ""
    assert directory({}, storageLocation="volume:///runs") == "volume:///runs/r"
    assert directory({}, "gs://elsewhere", storageLocation="volume:///") == "volume:///r"
    assert directory({}, "gs://of-the-program/r", storageLocation="volume:///") == "gs://of-the-program/r"
    assert directory({"storageLocation": "gs://a"}, "gs://b/r", storageLocation="gs://a") == "gs://a/r"


def test_the_name_of_a_run_is_that_of_people_of_its_program_or_of_its_workload() -> None:
    def name(spec: dict[str, Any], **status: str) -> str:
        return run_row_of({"metadata": {"name": "trainer-4f6c"}, "spec": spec, "status": status}).name

    workload = {"workloadRef": {"name": "trainer"}}
    assert name({"displayName": "best", **workload}, displayName="llama") == "best"
    assert name(workload, displayName="llama") == "llama"
    assert name(workload) == "trainer"
    assert name({}) == "trainer-4f6c"


def test_the_storage_of_a_program_is_shown_beside_that_of_the_operator() -> None:
    status = {"storageLocation": "volume:///", "reportedStorage": "gs://theirs/profiles"}
    row = run_row_of({"metadata": {}, "spec": {"runId": "r"}, "status": status})
    assert (row.storage, row.reported_storage, row.directory) == ("volume:///", "gs://theirs/profiles", "volume:///r")
