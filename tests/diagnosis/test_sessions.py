"""Sessions in a store: summaries and a diagnosis beside the traces, and one finding for each bad file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.findings import parse_diagnosis
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.job import run
from mldiagnostics_diagnosis.sessions import diagnose_session, read_summaries
from support.traces import TracedEvent as Event
from support.traces import xspace

if TYPE_CHECKING:
    from pathlib import Path


def trace_of(arrival_ms: float, clock_ms: float = 0.0) -> bytes:
    """Return a host that puts data on its device until it arrives; all leave after 50 ms."""
    host, device = [], []
    for n in range(12):
        t = clock_ms + n * 50.0
        host += [
            Event("step", t, 49.9, {"step_num": n}),
            Event("load", t, arrival_ms),
            Event("DevicePut", t + arrival_ms - 0.1, 0.1),
        ]
        device.append(Event("all-reduce", t + arrival_ms, 50.0 - arrival_ms, {"hlo_op": "all-reduce", "run_id": n}))
    return xspace({"/host:CPU": {"python": host, "tf_worker": device}})


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins/profile/s1"
    folder.mkdir(parents=True)
    for number, arrival_ms in enumerate((3.0, 35.0)):
        (folder / f"trainer-{number}.xplane.pb").write_bytes(trace_of(arrival_ms))
    targets = [
        {"pod": f"trainer-{n}", "node": f"n{n}", "rank": n, "state": "Captured", "file": f"x/trainer-{n}.xplane.pb"}
        for n in range(2)
    ]
    (folder / "capture.json").write_text(json.dumps({"targets": targets}))
    return folder


def test_a_session_ends_in_a_verdict_with_pod_node_and_rank(session: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    result = diagnose_session(store, "s1")
    verdict = result.diagnosis.verdict
    assert (verdict.code, verdict.phase, verdict.operation) == ("SlowHost", "input", "load")
    assert verdict.hosts[0].to_json() == {"name": "trainer-1", "rank": 1, "pod": "trainer-1", "node": "n1"}
    assert parse_diagnosis((session / "diagnosis.json").read_bytes(), source="d") == result.diagnosis
    assert tuple(read_summaries(store, "s1")) == result.summaries


def test_clocks_an_hour_apart_change_nothing(session: Path, tmp_path: Path) -> None:
    before = diagnose_session(open_store(str(tmp_path)), "s1", write=False).diagnosis
    (session / "trainer-0.xplane.pb").write_bytes(trace_of(3.0, clock_ms=3_600_000.0))
    assert diagnose_session(open_store(str(tmp_path)), "s1", write=False).diagnosis == before


def test_a_trace_is_read_once(session: Path, tmp_path: Path) -> None:
    first = diagnose_session(open_store(str(tmp_path)), "s1")
    for trace in session.glob("*.xplane.pb"):
        trace.write_bytes(b"\xff" * trace.stat().st_size)
    assert diagnose_session(open_store(str(tmp_path)), "s1") == first


def test_a_summary_of_another_version_or_trace_is_made_again(session: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = diagnose_session(store, "s1")
    (session / "trainer-0.summary.json").write_text('{"v": 99}')
    content = json.loads((session / "trainer-1.summary.json").read_text()) | {"trace_bytes": 1}
    (session / "trainer-1.summary.json").write_text(json.dumps(content))
    assert diagnose_session(store, "s1") == first


def test_one_bad_trace_leaves_the_findings_of_the_others(session: Path, tmp_path: Path) -> None:
    bad = session / "trainer-2.xplane.pb"
    bad.write_bytes(b"\xff" * 1000)
    result = diagnose_session(open_store(str(tmp_path)), "s1")
    assert [finding.code for finding in result.diagnosis.findings] == ["SlowHost", "Inconclusive"]
    assert result.diagnosis.findings[1].message == f"{bad}: is not a trace, or is cut; capture the host again"


def test_a_host_without_a_trace_is_named(session: Path, tmp_path: Path) -> None:
    record = json.loads((session / "capture.json").read_text())
    record["targets"].append({"pod": "trainer-4", "state": "Failed", "reason": "Unreachable", "file": None})
    (session / "capture.json").write_text(json.dumps(record))
    messages = [finding.message for finding in diagnose_session(open_store(str(tmp_path)), "s1").diagnosis.findings]
    assert messages[1] == "trainer-4: has no trace: Unreachable; capture the session again"


def changed_record(session: Path, **changes: Any) -> None:
    """Change keys of the record of a session."""
    record = json.loads((session / "capture.json").read_text())
    (session / "capture.json").write_text(json.dumps(record | changes))


def test_a_captured_host_without_trace_and_summary_is_named(session: Path, tmp_path: Path) -> None:
    (session / "trainer-0.xplane.pb").unlink()
    [doubt] = [each for each in diagnose_session(open_store(str(tmp_path)), "s1").diagnosis.findings if not each.cost_s]
    assert doubt.message == ("trainer-0: has neither a trace nor a summary in this session; capture the session again")


@pytest.mark.parametrize(
    ("trigger", "field"),
    [
        ({"podName": "trainer-0,trainer-1"}, "podName"),
        ({"target": {"runRef": {"name": "r"}, "ranks": "0-1"}}, "target.ranks"),
        ({"target": {"runRef": {"name": "r"}, "nodes": ["n0"]}}, "target.nodes"),
        ({"target": {"runRef": {"name": "r"}, "limit": 2}}, "target.limit"),
        ({"target": {"runRef": {"name": "r"}, "limit": 3}}, None),
        ({"target": {"runRef": {"name": "r"}, "nodes": []}}, None),
    ],
)
def test_a_capture_of_some_hosts_says_that_others_may_be_slow(
    session: Path, tmp_path: Path, trigger: dict[str, Any], field: str | None
) -> None:
    for number in range(2):
        (session / f"trainer-{number}.xplane.pb").write_bytes(trace_of(3.0))
    store = open_store(str(tmp_path))
    whole = diagnose_session(store, "s1").diagnosis
    assert [finding.code for finding in whole.findings] == ["CommunicationBound"]
    changed_record(session, requested={"triggerCapture": trigger})
    findings = diagnose_session(store, "s1").diagnosis.findings
    if field is None:
        assert findings == whole.findings
        return
    [doubt] = findings
    assert (doubt.code, doubt.message.startswith(f"`{field}` selects the hosts of this capture")) == (
        "Inconclusive",
        True,
    )
    (tmp_path / "run.json").write_text('{"worldSize": 3}')
    assert diagnose_session(store, "s1").diagnosis.findings == findings
    (tmp_path / "run.json").write_text('{"worldSize": 2}')
    assert diagnose_session(store, "s1").diagnosis.findings == whole.findings


def test_hosts_whose_traces_were_deleted_count_by_their_summaries(session: Path, tmp_path: Path) -> None:
    first = diagnose_session(open_store(str(tmp_path)), "s1")
    for trace in session.glob("*.xplane.pb"):
        trace.unlink()
        assert diagnose_session(open_store(str(tmp_path)), "s1").diagnosis == first.diagnosis


def test_a_summary_of_another_host_does_not_count(session: Path, tmp_path: Path) -> None:
    diagnose_session(open_store(str(tmp_path)), "s1")
    (session / "trainer-0.xplane.pb").unlink()
    (session / "trainer-0.summary.json").rename(session / "trainer-9.summary.json")
    assert [each.host for each in diagnose_session(open_store(str(tmp_path)), "s1").summaries] == ["trainer-1"]


def test_nothing_is_written_on_request(session: Path, tmp_path: Path) -> None:
    before = {*session.iterdir()}
    diagnose_session(open_store(str(tmp_path)), "s1", write=False)
    assert {*session.iterdir()} == before


def test_a_session_without_traces_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="s9: has no trace; choose another session"):
        diagnose_session(open_store(str(tmp_path)), "s9")


def test_the_job_prints_the_diagnosis_alone(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path), "s1") == 0
    assert capsys.readouterr().out.encode().strip() == (session / "diagnosis.json").read_bytes()


def test_the_job_names_its_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path), "none") == 1
    assert capsys.readouterr().err.endswith("has no trace; choose another session\n")


def test_the_job_names_a_store_that_takes_no_result(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (session / "diagnosis.json").mkdir()
    assert run(str(tmp_path), "s1") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["session"] == "s1"
    assert printed.err.splitlines()[-1].startswith(f"{tmp_path}")
