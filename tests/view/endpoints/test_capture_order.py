from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs import RankRow, RunRow
from mldiagnostics_view.endpoints.capture_order import CaptureOrder, capture_order, ranks_to_capture
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_CAPTURE_MS
from mldiagnostics_view.sources.source import RunDetail

ORDER_ID = "0123456789"
RANKS = st.frozensets(st.integers(0, 40), min_size=1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


def run(active: frozenset[int], failed: frozenset[int] = frozenset(), phase: Any = "Active") -> RunDetail:
    phases: dict[int, Any] = dict.fromkeys(failed, "Failed") | dict.fromkeys(active, "Active")
    hosts = [RankRow(rank, 0, "", "", each, "", "", heartbeat=None, step=None) for rank, each in phases.items()]
    row = RunRow(run_id="r", name="r", phase=phase, directory="/r")
    return RunDetail(row=row, attempts=(), hosts=hosts, sessions=(), findings=())


@given(RANKS, st.integers(1, MAX_CAPTURE_MS))
def test_property_an_order_is_read_back(ranks: frozenset[int], milliseconds: int) -> None:
    body = json.dumps({"orderId": ORDER_ID, "ranks": sorted(ranks), "durationMilliseconds": milliseconds})
    assert capture_order(body.encode()) == CaptureOrder(ORDER_ID, ranks, milliseconds)


@given(st.binary(max_size=40) | ANYTHING.map(lambda each: json.dumps(each).encode()))
def test_property_any_other_body_is_a_problem(body: bytes) -> None:
    with pytest.raises(RequestProblem) as problem:
        capture_order(body)
    assert problem.value.status == 400


@given(
    st.fixed_dictionaries(
        {"orderId": ANYTHING | st.just(ORDER_ID), "ranks": ANYTHING, "durationMilliseconds": ANYTHING}
    )
)
def test_property_an_order_with_other_values_is_a_problem_or_valid(document: dict[str, Any]) -> None:
    try:
        order = capture_order(json.dumps(document).encode())
    except RequestProblem:
        return
    assert order.order_id == ORDER_ID
    assert order.ranks == frozenset(document["ranks"])
    assert 1 <= order.milliseconds == document["durationMilliseconds"] <= MAX_CAPTURE_MS


@given(chosen=RANKS, active=RANKS, failed=st.frozensets(st.integers(0, 40)))
def test_property_only_active_hosts_are_captured(
    chosen: frozenset[int], active: frozenset[int], failed: frozenset[int]
) -> None:
    order = CaptureOrder(ORDER_ID, chosen, 10)
    if chosen - active:
        with pytest.raises(RequestProblem, match="not active any more"):
            ranks_to_capture(order, run(active, failed))
        return
    ranks = ranks_to_capture(order, run(active, failed))
    assert {rank for rank in range(41) if ranks is None or rank in ranks} & active == chosen
    assert (ranks is None) == (chosen == active)


def test_a_run_that_is_not_active_is_not_captured() -> None:
    with pytest.raises(RequestProblem, match="The run is not active but Failed") as problem:
        ranks_to_capture(CaptureOrder(ORDER_ID, frozenset({0}), 10), run(frozenset({0}), phase="Failed"))
    assert problem.value.status == 409
    with pytest.raises(RequestProblem, match="The hosts of this run are not known"):
        ranks_to_capture(CaptureOrder(ORDER_ID, frozenset({0}), 10), run(frozenset()))
