"""Which framework is profiled, of those that a process has imported."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.profiling.frameworks import choose, is_awaited, recorder
from mldiagnostics.profiling.recorder import CannotRecord

NAMES = ["jax", "torch_xla", "torch", "tensorflow"]


@given(imported=st.sets(st.sampled_from([*NAMES, "numpy"])), framework=st.sampled_from(["JAX", "PYTORCH", "OTHER"]))
def test_property_what_is_chosen_is_there(imported: set[str], framework: str) -> None:
    if imported.isdisjoint(NAMES):
        with pytest.raises(CannotRecord):
            choose(framework, imported)
    else:
        assert choose(framework, imported) in imported


@pytest.mark.parametrize(
    ("framework", "imported", "chosen"),
    [
        ("JAX", NAMES, "jax"),
        ("PYTORCH", NAMES, "torch_xla"),
        ("PYTORCH", ["jax", "torch"], "torch"),
        ("JAX", ["torch", "tensorflow"], "torch"),
        ("PYTORCH", ["jax", "tensorflow"], "jax"),
        ("tensorflow", NAMES, "tensorflow"),
        ("UNKNOWN", NAMES, "jax"),
    ],
)
def test_the_runs_own_comes_first_then_what_is_there(framework: str, imported: list[str], chosen: str) -> None:
    assert choose(framework, imported) == chosen


def test_what_cannot_be_profiled_is_named() -> None:
    with pytest.raises(CannotRecord, match="MXNET cannot be profiled"):
        choose("MXNET", ["mxnet"])
    for framework in ("JAX", "UNKNOWN"):
        with pytest.raises(CannotRecord, match="import it before profiling"):
            choose(framework, [])


@pytest.mark.parametrize(
    ("framework", "imported", "installed", "awaited"),
    [
        ("UNKNOWN", [], ["torch"], True),
        ("UNKNOWN", ["torch"], NAMES, False),
        ("JAX", ["torch"], NAMES, True),
        ("JAX", ["torch"], ["torch"], False),
        ("JAX", [], ["torch"], True),
        ("PYTORCH", ["torch"], NAMES, False),
        ("PYTORCH", ["jax"], NAMES, True),
        ("TENSORFLOW", ["jax"], NAMES, True),
    ],
)
def test_a_server_waits_for_the_runs_own_framework_and_without_one_for_any(
    framework: str, imported: list[str], installed: list[str], awaited: bool
) -> None:
    assert is_awaited(framework, imported, installed) is awaited


def test_nothing_is_awaited_where_nothing_is_installed() -> None:
    with pytest.raises(CannotRecord, match="there is nothing to profile"):
        is_awaited("UNKNOWN", [], [])


def test_a_module_of_that_name_that_is_something_else_is_no_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", type(sys)("tensorflow"))
    with pytest.raises(CannotRecord, match="tensorflow is imported and has no profiler"):
        recorder("tensorflow")
