from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.schedule import CaptureSchedule, schedule
from mldiagnostics_api.names import RefusalReason
from support.cluster import builders as a

NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)


def scheduled(duration_ms: int = 2000, *, targets: int = 2, **trigger: Any) -> CaptureSchedule | CaptureRefusal:
    spec = a.parsed(a.connection(podName="a", **trigger)).spec
    return schedule(spec.trigger_capture, duration_ms, targets=targets, now=NOW)


def test_several_targets_get_a_common_start_and_one_starts_at_once() -> None:
    assert scheduled(3000) == CaptureSchedule(2000, NOW + timedelta(seconds=2), NOW + timedelta(seconds=2 + 2 * 3 + 60))
    assert scheduled(3000, targets=1) == CaptureSchedule(0, NOW, NOW + timedelta(seconds=2 * 3 + 60))


def test_values_of_the_spec_are_used() -> None:
    requested = scheduled(500, startLeadMilliseconds=250, deadlineSeconds=9)
    assert requested == CaptureSchedule(250, NOW + timedelta(milliseconds=250), NOW + timedelta(seconds=9))


def test_a_deadline_that_is_too_short_is_refused_with_its_parts() -> None:
    refused = scheduled(5000, deadlineSeconds=7)
    assert isinstance(refused, CaptureRefusal)
    assert (refused.reason, refused.transient) == (RefusalReason.DEADLINE_TOO_SHORT, False)
    assert "deadlineSeconds 7" in refused.message
    assert "lead of 2 s and the duration of 5 s" in refused.message


@given(
    st.integers(1, 10**6),
    st.integers(0, 3),
    st.none() | st.integers(0, 60_000),
    st.none() | st.integers(1, 86_400),
)
def test_the_deadline_is_always_after_the_end_of_recording(
    duration_ms: int, targets: int, lead_ms: int | None, deadline_s: int | None
) -> None:
    requested = {"startLeadMilliseconds": lead_ms, "deadlineSeconds": deadline_s}
    times = scheduled(
        duration_ms, targets=targets, **{key: value for key, value in requested.items() if value is not None}
    )
    if isinstance(times, CaptureSchedule):
        assert times.start == NOW + timedelta(milliseconds=times.lead_ms)
        assert times.deadline > times.start + timedelta(milliseconds=duration_ms)
