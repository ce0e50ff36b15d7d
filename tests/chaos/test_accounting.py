"""Every wrong outcome of a scenario is counted, and nothing else is."""

import io
from collections import Counter
from typing import Any

import pytest
from chaos import table
from chaos.accounting import DENIED, INJECTED, NOT_INJECTED, CaptureEnd, Observed, spread
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console


def status(reason: str, **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Complete", "status": "True", "reason": reason}], "message": "", **more}


def ended(state: dict[str, Any], *allowed: str, stored: bool = True, seconds: float = 0.6) -> CaptureEnd:
    return CaptureEnd("x", seconds, state, allowed or ("Succeeded",), stored)


GOOD = ended(status("Succeeded", sessionId="x-1"))


def test_a_quiet_scenario_has_no_problems() -> None:
    seen = Observed(victims=[GOOD], profiled=Counter({"x-1": 1}), admissions=Counter({INJECTED: 100}))
    assert seen.problems() == seen.warnings() == []


@pytest.mark.parametrize(
    ("capture", "problem"),
    [
        (ended({}), "stuck: x"),
        (ended(status("Succeeded"), stored=False), "lost: x"),
        (ended(status("NothingCaptured")), "x: NothingCaptured, expected Succeeded: "),
        (ended(status("InternalError"), "InternalError"), "x: InternalError: "),
        (ended(status("NothingCaptured", results=[{"reason": "Unexpected"}]), "NothingCaptured"), "x: Unexpected: "),
        (ended(status("Succeeded", detail="\x1b[31m")), "x: the status has a control character"),
    ],
    ids=["stuck", "lost", "wrong", "internal", "unexpected", "control"],
)
def test_a_capture_that_ended_badly_is_a_problem(capture: CaptureEnd, problem: str) -> None:
    assert Observed(victims=[capture]).problems() == Observed(others=[capture]).problems() == [problem]


def test_the_reason_of_a_result_may_be_the_expected_one() -> None:
    assert not ended(status("NothingCaptured", results=[{"reason": "Slow"}, {}]), "Slow").wrong


@pytest.mark.parametrize(
    ("recorded", "attempt", "doubled"),
    [
        ({"x-1": 1}, 1, False),
        ({"x-1": 2}, 1, True),
        ({"x-1": 1, "x-1-2": 1}, 1, True),
        ({"x-1": 1, "x-1-2": 1}, 2, False),
        ({"x-1": 1, "x-1-2": 2}, 2, True),
        ({"y": 3, "x-10": 3}, 1, False),
    ],
)
def test_a_capture_is_doubled_if_its_status_names_fewer_attempts(
    recorded: dict[str, int], attempt: int, doubled: bool
) -> None:
    session = "x-1" if attempt == 1 else f"x-1-{attempt}"
    capture = ended(status("Succeeded", sessionId=session, attempt=attempt))
    assert bool(Observed(victims=[capture], profiled=Counter(recorded)).doubled) is doubled


@given(injected=st.integers(0, 300), missed=st.integers(0, 300), denied=st.integers(0, 3), expected=st.booleans())
def test_property_pods_without_a_run_are_a_problem_beyond_one_percent(
    injected: int, missed: int, denied: int, expected: bool
) -> None:
    admissions = Counter({INJECTED: injected, NOT_INJECTED: missed, DENIED: denied})
    too_many = expected and missed * 100 > injected + missed
    assert len(Observed(admissions=admissions, injection_expected=expected).problems()) == bool(denied) + too_many


@pytest.mark.parametrize(
    ("end", "expected", "problems"), [("Error", True, 0), ("Error", False, 1), ("OOMKilled", True, 1)]
)
def test_a_restart_is_a_problem_unless_the_scenario_kills(end: str, expected: bool, problems: int) -> None:
    seen = Observed(exits=[f"operator-1: {end}, exit code 137"], exits_expected=expected)
    assert len(seen.problems()) == problems
    assert seen.oom_kills == (end == "OOMKilled")


def test_memory_and_time_are_warnings() -> None:
    seen = Observed(victims=[ended(status("Succeeded"), seconds=3.4)], memory={"operator": 0.81, "webhook": 0.8})
    assert seen.warnings() == ["operator 81% of its memory limit", "victim 3.4 s"]
    assert seen.problems() == []


def test_a_report_that_is_refused_is_a_problem_and_a_slow_one_a_warning() -> None:
    seen = Observed()
    seen.note_reports("reported 200 5.0\nprobed 3.0\nreported 429 2001.0\nprobed 40.0\n")
    assert seen.problems() == ["1 reports of the victim got 429"]
    assert (seen.reports_ms, seen.blocked_ms) == ([5.0, 2001.0], 40.0)
    assert seen.warnings() == ["report of the victim 2001 ms"]


def test_a_victim_without_an_accepted_report_is_a_problem() -> None:
    seen = Observed()
    seen.note_reports("")
    assert seen.problems() == ["no report of the victim was accepted"]


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_spread_has_median_percentile_and_maximum(values: list[float]) -> None:
    low, middle, high = map(float, spread(values, 6).split("/"))
    assert low <= middle <= high == round(max(values), 6)


def test_the_table_has_a_row_for_each_scenario_and_every_problem_in_words() -> None:
    output = io.StringIO()
    bad = Observed(others=[ended({})], admissions=Counter({INJECTED: 98, NOT_INJECTED: 2}), memory={"operator": 0.5})
    table.show(Console(width=240, file=output), {"good": Observed(victims=[GOOD]), "bad": bad})
    _header, _rule, good, row, *problems = (line for line in output.getvalue().splitlines() if line.strip())
    assert good.split()[:6] == ["good", "0.6/0.6/0.6", "-", "-", "-", "Succeeded"]
    assert good.split()[-1] == "ok"
    assert {"2/100", "50%", "FAILED"} <= set(row.split())
    assert [line.strip() for line in problems] == ["bad: stuck: x", "bad: 2 of 100 pods not injected"]
