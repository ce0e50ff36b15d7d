"""Rows made of anything that stands in files, and phases as of the moment of reading."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.lifecycle.outcome import FINAL, RunOutcome
from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs.fold import folded
from mldiagnostics.runs.phase import phase_at
from mldiagnostics.runs.rank_row import RankRow, rank_rows
from mldiagnostics.runs.row import run_row

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["runId", "name", "phase", "reason", "created", "heartbeat", "progress", "configs", "attempt", "worldSize", "ended"]
)
SECONDS = st.floats(min_value=0, max_value=4e9)
PHASES = st.sampled_from(["Pending", "Active", "Completed", "Failed"])


@given(st.dictionaries(KEYS, JSON), SECONDS)
def test_anything_is_a_row(document: dict[str, Any], now: float) -> None:
    row = run_row(document, directory="d", now=now)
    assert row.phase in {"Pending", "Active", "Completed", "Failed"}
    assert row.world_size is None or row.world_size == int(document["worldSize"])
    assert json.dumps(row.to_json(), allow_nan=False)
    assert json.dumps(row.configs) is not None


@given(PHASES, SECONDS, st.floats(min_value=0.1, max_value=3600), SECONDS)
def test_only_what_should_be_alive_and_is_silent_is_lost(
    phase: Any, heartbeat: float, interval: float, now: float
) -> None:
    seen = phase_at(RunOutcome(phase), heartbeat=heartbeat, interval_s=interval, now=now)
    lost = phase == "Active" and now - heartbeat > 3 * interval
    assert (seen.phase, seen.reason) == (("Failed", "Lost") if lost else (phase, ""))


@given(PHASES, SECONDS)
def test_silence_without_a_heartbeat_says_nothing(phase: Any, now: float) -> None:
    for heartbeat, interval in [(None, 10.0), (0.0, None), (0.0, 0.0)]:
        assert phase_at(RunOutcome(phase), heartbeat=heartbeat, interval_s=interval, now=now).phase == phase


def noted(rank: int, t: float, *, phase: str = "", attempt: int = 0, step: int | None = None) -> Record:
    if phase:
        payload = {"host": f"h{rank}", "reason": f"{phase}Reason", "message": "why"}
        return Record("phase", t, phase, rank=rank, attempt=attempt, payload=payload, step=step)
    return Record("heartbeat", t, "alive", rank=rank, attempt=attempt, step=step, payload={"intervalSeconds": 10.0})


@given(st.permutations([
    ("a", noted(0, 0, phase="Active")), ("a", noted(0, 5, step=7)), ("a", noted(0, 9, phase="Completed", step=8)),
    ("b", noted(1, 1, phase="Active")), ("b", noted(1, 6, step=3)),
    ("c", noted(2, 1, phase="Active")), ("c", noted(2, 2, phase="Failed")),
    ("d", noted(2, 100, phase="Active", attempt=1)),
]))  # fmt: skip
def test_the_last_process_of_each_rank_is_its_row_in_any_order_of_records(records: list[tuple[str, Record]]) -> None:
    rows = rank_rows(records, now=101.0)
    assert [(row.rank, row.incarnation, row.attempt, row.phase, row.reason, row.step) for row in rows] == [
        (0, "a", 0, "Completed", "CompletedReason", 8),
        (1, "b", 0, "Failed", "Lost", 3),
        (2, "d", 1, "Active", "ActiveReason", None),
    ]
    assert [row.host for row in rows] == ["h0", "h1", "h2"]


JOB_START = Record("event", 9, "goodput", payload={"job_start_time": 9.0})


@given(st.permutations([
    ("parent", noted(0, 10, phase="Active")), ("parent", JOB_START),
    ("daemon", noted(0, 11, phase="Active")), ("daemon", JOB_START), ("daemon", noted(0, 12, phase="Failed", step=1)),
]))  # fmt: skip
def test_a_daemon_that_repeats_the_start_of_its_parents_job_is_the_last_process(
    records: list[tuple[str, Record]],
) -> None:
    [row] = rank_rows(records, now=12.0)
    assert (row.incarnation, row.phase, row.step, row.started) == ("daemon", "Failed", 1, 11)
    [row] = rank_rows([("parent", JOB_START)], now=12.0)
    assert (row.incarnation, row.phase, row.started) == ("parent", "Active", 9), "until it has another record"


def test_a_process_that_was_killed_before_its_first_sign_of_life_is_lost_by_the_interval_of_its_run() -> None:
    record = ("a", Record("metric", 100.0, "loss", 1.0))
    (row,) = rank_rows([record], now=131.0, interval_s=10.0)
    assert (row.phase, row.reason, row.ended) == ("Failed", "Lost", 100.0)
    (row,) = rank_rows([record], now=130.0, interval_s=10.0)
    assert (row.phase, row.ended) == ("Active", None)


RANKS = st.lists(
    st.builds(
        RankRow,
        rank=st.integers(0, 9),
        attempt=st.integers(0, 2),
        incarnation=st.just("i"),
        host=st.sampled_from(["", "h"]),
        phase=PHASES,
        reason=st.just("Reason"),
        message=st.sampled_from(["", "why"]),
        heartbeat=st.none(),
        step=st.none(),
    ),
    max_size=5,
)


@given(PHASES, st.integers(0, 2), RANKS)
def test_a_run_is_as_well_as_the_processes_of_its_attempt(phase: Any, attempt: int, ranks: list[RankRow]) -> None:
    row = run_row({"phase": phase, "attempt": attempt}, directory="d", now=0.0)
    whole, shown = folded(row, ranks)
    phases = {rank.phase for rank in ranks if rank.attempt == attempt} | {phase}
    assert (whole.phase == "Failed") == ("Failed" in phases)
    assert (whole.phase == "Completed") == (phases == {"Completed"})
    assert whole.phase in FINAL or whole.ended is None
    assert [rank.phase for rank in shown] == [rank.phase for rank in ranks]


def test_a_process_of_an_earlier_attempt_says_nothing_of_the_last_one() -> None:
    lost = {"incarnation": "a", "started": 100.0, "ended": 100.0, "phase": "Failed", "attempt": 0}  # killed at once
    document = {"phase": "Completed", "attempt": 0, "incarnation": "b", "started": 200.0, "attempts": [lost]}
    [killed] = rank_rows([("a", Record("phase", 100.0, "Active"))], now=1e4, interval_s=10.0)
    whole, shown = folded(run_row(document, directory="d", now=1e4), [killed])
    assert (killed.phase, whole.phase, whole.reason) == ("Failed", "Completed", "")
    assert shown == [killed]
