from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.reports.models import INTERVAL_S
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.memory import intervals
from mldiagnostics_operator.control_plane.memory.intervals import LATE_S, LEAST_SHARE, ReportRate, interval_s
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.control_plane.slices import finished
from support.cluster.reports import apply, body_of

RATE = ReportRate()
FLEETS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 20_000), min_size=1)


@given(FLEETS)
def test_no_fleet_reports_more_often_than_the_leader_takes(fleet: dict[str, int]) -> None:
    rates = {name: number / interval_s(fleet, name, RATE) for name, number in fleet.items()}
    if sum(fleet.values()) > limits.REPORTS_OF_ALL_PER_SECOND * INTERVAL_S:
        share = limits.REPORTS_OF_ALL_PER_SECOND / len(fleet)
        for name, number in fleet.items():
            assert rates[name] <= max(share, number / limits.LONGEST_INTERVAL_S)
    else:
        assert sum(rates.values()) <= limits.REPORTS_OF_ALL_PER_SECOND
    if limits.CONNECTIONS < sum(fleet.values()) <= limits.HANDSHAKES_PER_SECOND * limits.LONGEST_INTERVAL_S / 2:
        assert sum(rates.values()) < limits.HANDSHAKES_PER_SECOND


@given(FLEETS)
def test_a_namespace_within_its_share_never_reports_less_often(fleet: dict[str, int]) -> None:
    share = limits.REPORTS_OF_ALL_PER_SECOND * INTERVAL_S / len(fleet)
    for name, number in fleet.items():
        if number <= share or sum(fleet.values()) <= share * len(fleet):
            assert interval_s(fleet, name, RATE) == INTERVAL_S


def report(table: ReportTable, key: RunKey, process: int, received: float, **changes: Any) -> int:
    """Report a process; return the seconds to its next report."""
    document = {"v": 1, "incarnation": f"{process:08x}", "sequence": int(received), "sent": received}
    apply(table, key, body_of(document | changes), Sender(key.namespace, "default", "pod", f"uid-{process}"), received)
    return table.answer(key, document["incarnation"]).interval_seconds  # type: ignore[arg-type]


def test_processes_of_a_large_fleet_report_less_often_and_are_not_lost_meanwhile(monkeypatch: Any) -> None:
    monkeypatch.setattr(intervals, "REPORTS_OF_ALL_PER_SECOND", 1)
    table, large, small = ReportTable(), RunKey("large", "run"), RunKey("small", "run")
    for process in range(40):
        assert report(table, large, process, 1.0) == INTERVAL_S
    finished(table.count_reporting(1.0))
    assert report(table, large, 0, 11.0) == 40
    report(table, small, 0, 11.0)
    finished(table.count_reporting(11.0))
    assert report(table, small, 0, 21.0) == INTERVAL_S
    assert report(table, large, 0, 21.0) == 80
    view = table.view(large)
    assert view is not None
    assert view.silent_s == 3 * 80
    finished(table.count_reporting(1000.0))  # of processes that are silent for so long, none counts
    assert report(table, large, 0, 1001.0) == INTERVAL_S


def test_processes_that_have_ended_do_not_count(monkeypatch: Any) -> None:
    monkeypatch.setattr(intervals, "REPORTS_OF_ALL_PER_SECOND", 1)
    table, key = ReportTable(), RunKey("ml", "run")
    for process in range(40):
        report(table, key, process, 1.0, phase="Completed")
    finished(table.count_reporting(1.0))
    assert report(table, key, 99, 2.0) == INTERVAL_S


@given(st.lists(st.floats(0, 60)), FLEETS)
def test_a_late_leader_takes_fewer_reports_and_as_many_as_before_when_it_is_in_time_again(
    late_s: list[float], fleet: dict[str, int]
) -> None:
    rate = ReportRate()
    for each in late_s:
        before = rate.share
        rate.note(each)
        assert LEAST_SHARE <= rate.share <= 1
        assert rate.share < before or each <= LATE_S or before == LEAST_SHARE
    for name in fleet:
        usual_s = interval_s(fleet, name, RATE)
        assert usual_s <= interval_s(fleet, name, rate) <= max(usual_s, 2 * INTERVAL_S)
        if sum(fleet.values()) <= rate.share * limits.REPORTS_OF_ALL_PER_SECOND * INTERVAL_S:
            assert interval_s(fleet, name, rate) == INTERVAL_S
    for _ in range(70):
        rate.note(0.0)
    assert rate.share == 1


def test_a_process_reports_less_often_step_by_step_while_the_leader_is_late() -> None:
    rate, fleet, intervals_s = ReportRate(), {"ml": 2000}, [INTERVAL_S]
    for _ in range(20):
        rate.note(10.0)
    while len(intervals_s) < 6:
        intervals_s.append(interval_s(fleet, "ml", rate, before_s=intervals_s[-1]))
    assert intervals_s == [10, 20, 40, 80, 160, 200]
    for _ in range(70):
        rate.note(0.0)
    assert interval_s(fleet, "ml", rate, before_s=200) == INTERVAL_S
