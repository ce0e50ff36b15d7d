"""Outcomes for any evidence."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.lifecycle.outcome import FINAL, ExitEvidence, is_success, judge, shorten

SEEN = st.builds(
    ExitEvidence,
    uncaught=st.sampled_from(["", "ValueError: x"]),
    thread=st.sampled_from(["", "loader: ValueError"]),
    signal=st.sampled_from(["", "SIGTERM"]),
    handled=st.sampled_from(["", "SIGTERM"]),
    preempted=st.booleans(),
    exits=st.sampled_from([(), (None,), (0,), (1,), ("no data",)]),
    returned=st.sampled_from([None, False, True]),
)


@given(SEEN)
def test_every_outcome_is_final_and_a_failure_has_a_reason(seen: ExitEvidence) -> None:
    verdict = judge(seen)
    assert verdict.phase in FINAL
    assert verdict.phase == "Completed" or (verdict.reason and verdict.message)


@given(SEEN)
def test_completed_requires_no_bad_evidence(seen: ExitEvidence) -> None:
    bad_exit = bool(seen.exits) and not seen.returned and seen.exits[0] not in {None, 0}
    bad = bool(seen.uncaught or seen.thread or seen.signal or seen.preempted or bad_exit)
    assert (judge(seen).phase == "Failed") == bad


@given(SEEN, st.sampled_from(sorted(FINAL)))
def test_the_declared_phase_wins(seen: ExitEvidence, declared: Any) -> None:
    fields = {name: getattr(seen, name) for name in ExitEvidence.__slots__}
    assert judge(ExitEvidence(**{**fields, "declared": declared})).phase == declared


@pytest.mark.parametrize("argument", ["None", "0", "1", "256", "255", "-1", "True", "False", "''", "'x'", "0.0", "[]"])
def test_success_is_what_python_makes_status_0(argument: str) -> None:
    status = subprocess.run([sys.executable, "-c", f"import sys; sys.exit({argument})"], check=False, timeout=120)
    assert is_success(eval(argument)) == (status.returncode == 0)  # noqa: S307 - the arguments above


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_shortened_text_is_one_short_line(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert len(short.splitlines()) <= 1
