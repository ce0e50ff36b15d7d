"""Cells of the list of runs: paths of configurations, texts cut, names bounded."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_view.limits import MAX_DEPTH, MAX_VALUE_CHARS, MAX_VALUES
from mldiagnostics_view.run_values import run_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=200), inner, max_size=5),
    max_leaves=20,
)


def test_configurations_have_paths_and_those_of_the_user_come_first() -> None:
    configs = {"software": {"jax": "0.9"}, "user": {"rate": 0.1, "layers": [1, 2], "adam": {"beta": 0.9}, "empty": {}}}
    cells = run_values(configs, {"loss": float("nan"), "step": 3.0})
    assert [*cells["configs"].items()] == [
        ("user.rate", 0.1),
        ("user.layers", "[1, 2]"),
        ("user.adam.beta", 0.9),
        ("user.empty", "{}"),
        ("software.jax", "0.9"),
    ]
    assert cells["metrics"] == {"loss": "NaN", "step": 3.0}


@given(st.dictionaries(st.text(max_size=200), JSON, max_size=10), st.dictionaries(st.text(max_size=200), st.floats()))
def test_cells_are_small_whatever_is_stored(configs: dict[str, Any], metrics: dict[str, float]) -> None:
    for cells in run_values(configs, metrics).values():
        assert len(cells) <= MAX_VALUES
        for name, cell in cells.items():
            assert len(name) <= MAX_VALUE_CHARS
            assert not isinstance(cell, str) or len(cell) <= MAX_VALUE_CHARS + 1
            assert not isinstance(cell, int) or abs(cell) < 2**53


def test_a_configuration_of_many_levels_is_cut() -> None:
    sections: dict[str, Any] = {}
    values: list[Any] = []
    for _ in range(5000):
        sections, values = {"": sections}, [values]
    cells = run_values({"user": {"sections": sections, "values": values}}, {})["configs"]
    assert cells["user.values"] == "[" * MAX_DEPTH + '"\\u2026"' + "]" * (MAX_VALUE_CHARS - MAX_DEPTH - 8) + "…"
    assert len(cells) == 2
