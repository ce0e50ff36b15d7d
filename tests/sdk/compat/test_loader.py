"""Old import paths: each leads to the one module object, in every way that programs import."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import mldiagnostics
import pytest
from mldiagnostics.compat.aliases import OLD_PATHS
from mldiagnostics.compat.goodput_utils import GCPOptions, StepInfo

PARTS = [path for path in OLD_PATHS if path.count(".") == 1]


@pytest.mark.parametrize("path", OLD_PATHS)
def test_an_old_path_gives_the_same_module(path: str) -> None:
    module = import_module(OLD_PATHS[path])
    spec = module.__spec__
    assert import_module(path) is module
    assert module.__spec__ is spec
    assert module.__name__ == OLD_PATHS[path]
    assert find_spec(path) is not None


IMPORTS = """
import sys
before = {name for name in sys.modules if name.startswith("mldiagnostics")}
from importlib.util import find_spec
assert find_spec("PATH") is not None
import PATH as first
from PARENT import NAME as second
import PATH
assert first is second is PATH is sys.modules["TARGET"], (first, second)
assert first.__spec__.name == "TARGET"
assert first.__spec__.loader.get_source("TARGET")
"""


@pytest.mark.parametrize("path", OLD_PATHS)
def test_every_import_statement_finds_an_old_path_in_a_fresh_process(path: str) -> None:
    parent, _, name = path.rpartition(".")
    program = IMPORTS.replace("PATH", path).replace("PARENT", parent).replace("NAME", name)
    program = program.replace("TARGET", OLD_PATHS[path])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", ["run_vllm", "collect_profile", "checkpoint_badput_calculator"])
def test_commands_run_by_their_old_path(path: str) -> None:
    command = [sys.executable, "-W", "error", "-m", f"mldiagnostics.{path}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert f"python -m mldiagnostics.{path}" in done.stdout


@pytest.mark.parametrize("path", PARTS)
def test_public_modules_are_attributes_of_the_package(path: str) -> None:
    name = path.rpartition(".")[2]
    if name in mldiagnostics.__all__:
        assert getattr(mldiagnostics, name) is import_module(OLD_PATHS[path])


def test_pickles_of_the_old_path_load_and_new_ones_survive() -> None:
    old = pickle.dumps(StepInfo(1.0, {}), protocol=0).replace(b"mldiagnostics.compat.", b"mldiagnostics.")
    assert pickle.loads(old) == StepInfo(1.0, {})  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(GCPOptions("p"))) == GCPOptions("p")  # noqa: S301


def test_other_names_are_still_refused() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mldiagnostics\.nonsense"):
        import_module("mldiagnostics.nonsense")
    assert find_spec("mldiagnostics.nonsense") is None
