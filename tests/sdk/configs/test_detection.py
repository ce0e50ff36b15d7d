"""The framework of a program, by its imported modules."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.configs.detection import FRAMEWORKS, chosen, detect, imported, is_installed
from mldiagnostics.run import Framework

NAMES = st.sets(st.sampled_from(FRAMEWORKS))


@given(imported=NAMES, in_use=NAMES)
def test_property_one_that_is_imported_is_chosen_and_first_one_in_use(imported: set[str], in_use: set[str]) -> None:
    framework = chosen(imported, in_use)
    of = {"jax": "JAX", "torch": "PYTORCH", "torch_xla": "PYTORCH", "tensorflow": "TENSORFLOW"}
    assert (framework is Framework.DETECT) == (not imported)
    assert framework.name in {of[name] for name in (imported & in_use or imported or {})} | {"DETECT"}


@pytest.mark.parametrize(
    ("imported", "in_use", "framework"),
    [
        (["torch", "jax"], [], "JAX"),
        (["torch", "jax"], ["torch"], "PYTORCH"),
        (["torch", "jax"], ["torch", "jax"], "JAX"),
        (["tensorflow", "torch"], [], "PYTORCH"),
        (["tensorflow"], [], "TENSORFLOW"),
    ],
)
def test_jax_comes_first_unless_only_another_one_has_devices(
    imported: list[str], in_use: list[str], framework: str
) -> None:
    assert chosen(imported, in_use).name == framework


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in FRAMEWORKS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return monkeypatch


def test_a_framework_that_is_being_imported_is_not_there_yet(modules: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch")
    module.__spec__ = ModuleSpec("torch", None)
    module.__spec__._initializing = True  # type: ignore[attr-defined]  # as the import system does
    modules.setitem(sys.modules, "torch", module)
    assert imported() == set()
    assert detect() is Framework.DETECT
    module.__spec__._initializing = False  # type: ignore[attr-defined]
    assert imported() == {"torch"}
    assert detect() is Framework.PYTORCH


def test_a_blocked_module_is_neither_imported_nor_installed(modules: pytest.MonkeyPatch) -> None:
    modules.setitem(sys.modules, "jax", None)
    assert imported() == set()
    assert not is_installed("jax")
    assert is_installed("json")
