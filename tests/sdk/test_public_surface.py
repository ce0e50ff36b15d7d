"""What `import mldiagnostics` offers: few names, each there, nothing loaded before its time."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import mldiagnostics
import pytest
from mldiagnostics import errors

SDK = Path(__file__).parents[2] / "sdk/src"

LOADED_BY = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
exec(sys.argv[2])
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
print(*sorted(name for name in set(sys.modules) - before if name.startswith("mldiagnostics")))
"""


def loaded_by(statement: str) -> tuple[set[str], set[str]]:
    """Run a statement in a bare Python: no site packages, no environment, only the SDK's sources."""
    command = [sys.executable, "-I", "-S", "-c", LOADED_BY, str(SDK), statement]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.split("\n")
    return set(lines[0].split()), set(lines[1].split())


def test_each_name_is_there() -> None:
    for name in mldiagnostics.__all__:
        assert getattr(mldiagnostics, name)
        assert name in dir(mldiagnostics)


def test_all_errors_are_public() -> None:
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert kinds <= set(mldiagnostics.__all__)


def test_the_version_is_that_of_the_package() -> None:
    assert mldiagnostics.__version__ == importlib.metadata.version("mldiagnostics")


def test_other_names_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = mldiagnostics.nonsense


def test_the_package_is_typed() -> None:
    assert (SDK / "mldiagnostics/py.typed").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "import mldiagnostics",
        "from mldiagnostics import *",
        "from mldiagnostics.store import open_store; open_store('/tmp/x')",
        "import mldiagnostics.identity, mldiagnostics.layout",
    ],
)
def test_it_imports_without_any_third_party_module(statement: str) -> None:
    packages, _ = loaded_by(statement)
    assert packages - {"mldiagnostics"} <= sys.stdlib_module_names


def test_what_is_not_used_is_not_loaded() -> None:
    _, modules = loaded_by("import mldiagnostics")
    assert modules == {"mldiagnostics", "mldiagnostics.errors"}
