"""The choice of the framework to profile among the imported ones."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.profiling.frameworks import choose, is_awaited, recorder
from mldiagnostics.profiling.recorder import CannotRecord

NAMES = ["jax", "torch_xla", "torch", "tensorflow"]


@given(imported=st.sets(st.sampled_from([*NAMES, "numpy"])), framework=st.sampled_from(["JAX", "PYTORCH", "OTHER"]))
def test_property_the_chosen_framework_is_imported(imported: set[str], framework: str) -> None:
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
def test_the_runs_own_framework_is_chosen_first(framework: str, imported: list[str], chosen: str) -> None:
    assert choose(framework, imported) == chosen


def test_the_error_names_the_unsupported_framework() -> None:
    with pytest.raises(CannotRecord, match="MXNET cannot be profiled"):
        choose("MXNET", ["mxnet"])
    for framework in ("JAX", "UNKNOWN"):
        with pytest.raises(CannotRecord, match="import one before profiling"):
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
def test_a_server_waits_for_the_runs_framework_or_for_any(
    framework: str, imported: list[str], installed: list[str], awaited: bool
) -> None:
    assert is_awaited(framework, imported, installed) is awaited


def test_a_server_does_not_wait_if_no_framework_is_installed() -> None:
    with pytest.raises(CannotRecord, match="there is nothing to profile"):
        is_awaited("UNKNOWN", [], [])


def test_another_module_with_a_frameworks_name_cannot_be_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", type(sys)("tensorflow"))
    with pytest.raises(CannotRecord, match="tensorflow has no usable profiler"):
        recorder("tensorflow")
