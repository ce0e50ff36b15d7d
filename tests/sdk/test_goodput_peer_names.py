"""The names and signatures of ml-goodput-measurement.

`data/peer_names.json` has the names of 0.2.3, as `support/goodput/public_names.py` sees them there.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import mldiagnostics
import pytest
from support.goodput import public_names as goodput_names
from support.programs import environments

NAMES = json.loads((Path(__file__).parent / "goodput/data/peer_names.json").read_text())
LEFT_OUT = {
    ("checkpoint_badput_calculator", "RestoreProcessedStep"),  # passed between its own functions
    ("checkpoint_badput_calculator", "SaveProcessedStep"),
    ("monitoring", "ACTIVITY_EXCLUSION_LIST"),
    ("monitoring", "UnproductiveTimeDict"),
}
BY_THE_WAY = {"goodput_cache", "goodput_exclusion", "monitoring"}
"""Modules that import names from others for their own use: those names are where they belong."""

EACH = [
    (module, name)
    for module, names in NAMES.items()
    for name, theirs in names.items()
    if (module, name) not in LEFT_OUT and not ("of" in theirs and module in BY_THE_WAY and name != "GCPOptions")
]


def ours(module: str, name: str) -> Any:
    return getattr(import_module(f"mldiagnostics.{goodput_names.MODULES[module]}"), name)


@pytest.mark.parametrize(("module", "name"), EACH)
def test_each_name_is_there_and_means_the_same(module: str, name: str) -> None:
    theirs, value = NAMES[module][name], ours(module, name)
    if "of" in theirs:
        assert value is ours(theirs["of"], name)
    if "members" in theirs:
        assert {member.name: member.value for member in value} == theirs["members"]
    if "value" in theirs:
        assert value == theirs["value"]
    if theirs.get("parameters"):
        assert_callable_as(value, theirs["parameters"])
    for method, parameters in theirs.get("methods", {}).items():
        assert_callable_as(getattr(value, method), parameters)


def assert_callable_as(function: Any, theirs: list[list[Any]]) -> None:
    """Every call that the peer takes is one that we take, and means the same."""
    listed = {name: (kind, default) for name, kind, default in goodput_names.parameters(function)}
    positional = [name for name, (kind, _) in listed.items() if kind == "POSITIONAL_OR_KEYWORD"]
    expected = [name for name, kind, _ in theirs if kind == "POSITIONAL_OR_KEYWORD"]
    assert positional[: len(expected)] == expected
    for name, _, default in theirs:
        assert name in listed
        if default and default != ["..."]:
            assert listed[name][1] == default, name
    unknown = set(listed) - {name for name, _, _ in theirs}
    for name in unknown:
        parameter = inspect.signature(function).parameters[name]
        assert parameter.default is not inspect.Parameter.empty, f"{name} is required here and not known there"


def test_modules_are_where_the_peer_has_them() -> None:
    for name in NAMES:
        ours_name = goodput_names.MODULES[name]
        if "." not in ours_name:
            assert getattr(mldiagnostics, ours_name) is import_module(f"mldiagnostics.{ours_name}")


def test_public_names_are_listed_and_there() -> None:
    for module in set(goodput_names.MODULES.values()):
        imported = import_module(f"mldiagnostics.{module}")
        assert [name for name in imported.__all__ if not hasattr(imported, name)] == []
        assert set(imported.__all__) <= set(dir(imported))


@pytest.mark.parametrize("module", ["goodput", "goodput_elastic", "goodput_utils"])
def test_a_missing_name_raises_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        getattr(import_module(f"mldiagnostics.{module}"), "nonsense")  # noqa: B009 - a runtime look-up


RECORDS_ONLY = """
import sys
from mldiagnostics.goodput import GoodputRecorder
from mldiagnostics.goodput_elastic import ElasticGoodputRecorder
print(*sorted(name for name in sys.modules if name.startswith("mldiagnostics.goodput")))
"""


def test_recording_loads_no_ledger() -> None:
    done = subprocess.run([sys.executable, "-c", RECORDS_ONLY], capture_output=True, text=True, timeout=60, check=True)
    computing = {"calculator", "history", "ideal", "ledger", "queries", "report"}
    assert not {f"mldiagnostics.goodput.{name}" for name in computing} & set(done.stdout.split())


@pytest.mark.peers
def test_the_list_is_that_of_the_peer() -> None:
    try:
        python = environments.interpreter("peer-goodput")
    except environments.Unavailable as reason:
        pytest.skip(str(reason))
    command = [str(python), "-W", "ignore", goodput_names.__file__, "ml_goodput_measurement.src"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == NAMES
