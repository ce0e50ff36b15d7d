from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.plot import LABEL_WIDTH, plot

NUMBERS = st.floats(width=64)


@given(st.lists(NUMBERS, max_size=200), st.integers(30, 120), st.integers(2, 10))
def test_a_plot_has_its_size_and_shows_each_value(values: list[float], width: int, height: int) -> None:
    lines = plot(values, width=width, height=height)
    assert len(lines) in {0, height}
    assert all(len(line) <= width for line in lines)
    if lines:
        drawn = [line[LABEL_WIDTH + 1 :].ljust(width) for line in lines]
        columns = min(len(values), width - LABEL_WIDTH - 1)
        assert all(any(line[column] != " " for line in drawn) for column in range(columns))


def test_a_curve_that_falls_is_drawn_so() -> None:
    assert plot([4.0, 3.0, 2.0, 1.0, 0.0], width=20, height=2) == ["          4 █▄", "          0 ███▄▁"]


def test_a_value_that_is_not_finite_is_marked() -> None:
    assert [line[LABEL_WIDTH + 1 :] for line in plot([1.0, float("nan"), 1.0], width=20, height=2)] == [" !", "█ █"]
