from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.findings import Diagnosis, Finding, FindingHost
from mldiagnostics.runs import FindingRow
from mldiagnostics_diagnosis.summary import HostSummary, Steps
from mldiagnostics_view.limits import MAX_HEAT_CELLS
from mldiagnostics_view.session_diagnosis import noted_diagnosis, session_diagnosis

DIAGNOSIS = Diagnosis("s", 1, 1, 0.1, (Finding("NoProblemFound", "info", "fine", "nothing"),))

step_numbers = st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=8)


def host(name: str, numbers: list[int], *, arrives: bool = True) -> HostSummary:
    series = tuple(float(number) for number in numbers)
    return HostSummary(
        host=name,
        trace_bytes=1,
        platform="cpu",
        duration_s=1.0,
        steps=Steps(
            source="annotations",
            total=len(numbers),
            numbers=tuple(numbers),
            seconds=series,
            arrivals=series if arrives else (),
            waits=series if arrives else (),
            phases={"compute": series},
        ),
    )


@given(st.lists(step_numbers, max_size=5), st.randoms(use_true_random=False))
def test_arrivals_are_those_of_the_common_steps_in_any_order_of_hosts(hosts: list[list[int]], random: object) -> None:
    summaries = [host(f"host-{at}", numbers) for at, numbers in enumerate(hosts)]
    arrivals = session_diagnosis(DIAGNOSIS, summaries)["arrivals"]
    assert arrivals["steps"] == sorted(set.intersection(*map(set, hosts)) if hosts else ())
    assert arrivals["rows"] == [arrivals["steps"]] * len(hosts)  # a step arrives at its number here
    random.shuffle(summaries)  # type: ignore[attr-defined]
    assert session_diagnosis(DIAGNOSIS, summaries)["arrivals"] == arrivals


def test_hosts_without_steps_or_collectives_are_left_out() -> None:
    silent = HostSummary(host="silent", trace_bytes=1, platform="cpu", duration_s=1.0)
    document = session_diagnosis(DIAGNOSIS, [host("a", [1, 2]), host("b", [2, 3], arrives=False), silent])
    assert document["hosts"] == [
        {"name": "a", "phases": {"compute": 1.5}, "isSlow": False},
        {"name": "b", "phases": {"compute": 2.5}, "isSlow": False},
    ]
    assert document["arrivals"] == {"steps": [2], "hosts": ["a"], "rows": [[2.0]]}


@pytest.mark.parametrize(
    ("code", "is_slow"),
    [
        ("SlowHost", True),
        ("SeveralSlowHosts", True),
        ("AlternatingHosts", True),
        ("MemoryNearLimit", False),
        ("DebugCallback", False),
    ],
)
def test_only_findings_of_slow_hosts_mark_hosts_as_slow(code: str, *, is_slow: bool) -> None:
    finding = Finding(code, "critical", "m", "n", (FindingHost("b"),), 1)
    document = session_diagnosis(Diagnosis("s", 2, 2, 0.1, (finding,)), [host("a", [1, 2]), host("b", [1, 2])])
    assert [each["name"] for each in document["hosts"] if each["isSlow"]] == ["b"] * is_slow


def test_the_map_of_many_hosts_is_bounded() -> None:
    summaries = [host(f"host-{at:04}", list(range(64))) for at in range(1000)]
    arrivals = session_diagnosis(DIAGNOSIS, summaries)["arrivals"]
    assert len(arrivals["rows"]) * len(arrivals["steps"]) <= MAX_HEAT_CELLS
    assert len(arrivals["hosts"]) == 1000


def test_the_status_of_a_run_has_findings_without_a_picture() -> None:
    rows = [FindingRow("SlowHost", "critical", "late", "a", 1.0, ("w-1",)), FindingRow("Idle", "info", "m", "b", 2.0)]
    document = noted_diagnosis("a", rows)
    assert document
    [finding] = document["diagnosis"]["findings"]
    assert (finding["code"], finding["hosts"][0]["pod"], finding["nextStep"][:8]) == ("SlowHost", "w-1", "Diagnose")
    assert (document["hosts"], document["arrivals"]["steps"]) == ([], [])
    assert noted_diagnosis("c", rows) is None
