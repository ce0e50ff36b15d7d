from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.captures.recovery import (
    ATTEMPTS,
    GRACE,
    FinishInterrupted,
    Holder,
    HolderPod,
    Liveness,
    Resume,
    StartAgain,
    decide,
    leave_until,
    liveness,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = int(NOW.timestamp())
ME = f"operator-b/uid-b/{STARTED}-cafe"
OTHER = f"operator-a/uid-a/{STARTED - 600}-beef"
MOMENTS = st.timedeltas(min_value=timedelta(hours=-1), max_value=timedelta(hours=1)).map(lambda delta: NOW + delta)


def pod(uid: str = "uid-a", *, running: bool = True, container_age_s: int = 601) -> HolderPod:
    return HolderPod(uid, running, NOW - timedelta(seconds=container_age_s))


@pytest.mark.parametrize(
    ("holder", "holder_pod", "expected"),
    [
        pytest.param(OTHER, pod(), Liveness.ALIVE, id="its pod runs"),
        pytest.param(OTHER, None, Liveness.DEAD, id="its pod is gone"),
        pytest.param(OTHER, pod("uid-new"), Liveness.DEAD, id="its pod was replaced by one of the same name"),
        pytest.param(OTHER, pod(running=False), Liveness.DEAD, id="its pod has ended"),
        pytest.param(OTHER, pod(container_age_s=60), Liveness.DEAD, id="its container was restarted"),
        pytest.param(f"operator-b/uid-b/{STARTED - 9}-0", pod("uid-b"), Liveness.DEAD, id="an earlier process of ours"),
        pytest.param(ME, pod("uid-b"), Liveness.DEAD, id="this process, which stopped working on it"),
        pytest.param(f"laptop//{STARTED}-0", None, Liveness.UNKNOWN, id="not a pod"),
    ],
)
def test_a_holder_is_alive_as_long_as_its_container_runs(
    holder: str, holder_pod: HolderPod | None, expected: Liveness
) -> None:
    assert liveness(holder, me=ME, pod=holder_pod) is expected


@given(st.text())
def test_any_text_parses_as_a_holder(text: str) -> None:
    Holder.parse(text)
    assert liveness(text, me=ME, pod=None) in Liveness


@given(MOMENTS)
def test_only_a_dead_holder_loses_its_capture_before_the_deadline(deadline: datetime) -> None:
    for judged in (Liveness.ALIVE, Liveness.UNKNOWN):
        until = leave_until(judged, deadline=deadline, now=NOW)
        assert until is None if deadline + GRACE <= NOW else until == deadline + GRACE
    assert leave_until(Liveness.DEAD, deadline=deadline, now=NOW) is None


@given(st.integers(1, 5), st.none() | MOMENTS, st.integers(0, 5))
def test_stored_traces_are_never_recorded_again_and_attempts_end(
    attempt: int, planned_start: datetime | None, traces: int
) -> None:
    step = decide(attempt=attempt, planned_start=planned_start, traces=traces, now=NOW)
    if traces:
        assert step == FinishInterrupted()
    if isinstance(step, StartAgain):
        assert step.attempt == attempt + 1 <= ATTEMPTS
    if isinstance(step, Resume):
        assert planned_start is not None
        assert planned_start > NOW


def test_a_capture_that_was_to_start_later_starts_as_planned() -> None:
    assert decide(attempt=1, planned_start=NOW + timedelta(seconds=1), traces=0, now=NOW) == Resume()


def test_a_lost_recording_is_retried_once() -> None:
    assert decide(attempt=1, planned_start=NOW, traces=0, now=NOW) == StartAgain(2)
    assert decide(attempt=2, planned_start=NOW, traces=0, now=NOW) == FinishInterrupted()
