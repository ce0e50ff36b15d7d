"""Bins and quantiles against the durations themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_view.step_histogram import BINS_PER_DOUBLING, step_histogram


@given(st.lists(st.floats(1e-6, 1e5) | st.just(0.0), min_size=1, max_size=300))
def test_every_duration_is_in_one_bin(durations: list[float]) -> None:
    shown = step_histogram(durations)
    assert sum(count for _, count in shown["bins"]) == shown["count"] == len(durations)
    for duration in filter(None, durations):
        assert any(
            2 ** (at / BINS_PER_DOUBLING) <= duration * 1.0001
            and duration <= 2 ** ((at + 1) / BINS_PER_DOUBLING) * 1.0001
            for at, _ in shown["bins"]
        )
    for name, share in (("p1", 0.01), ("median", 0.5), ("p90", 0.9), ("p99", 0.99)):
        quantile = shown[name]
        assert sum(each < quantile for each in durations) < share * len(durations) + 1e-9
        assert sum(each <= quantile for each in durations) >= share * len(durations) - 1e-9


def test_no_steps_are_no_numbers() -> None:
    assert step_histogram([])["median"] is None
