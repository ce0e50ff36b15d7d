"""The shape of the repository: allowed dependencies, and names that must not shadow others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "sdk": ROOT / "sdk/src/mldiagnostics",
    "shim": ROOT / "shim/src/mldiagnostics_shim",
    "api": ROOT / "api/src/mldiagnostics_api",
    "kube": ROOT / "kube/src/mldiagnostics_kube",
    "diagnosis": ROOT / "diagnosis/src/mldiagnostics_diagnosis",
    "operator": ROOT / "operator/src/mldiagnostics_operator",
    "webhook": ROOT / "webhook/src/mldiagnostics_webhook",
    "cli": ROOT / "cli/src/mldiagnostics_cli",
    "view": ROOT / "view/src/mldiagnostics_view",
}
PAGE = ROOT / "view/web/src"
OF_A_WHOLE_PACKAGE = {"public_surface", "peers"}
TESTS = [path for member in PACKAGES for path in sorted((ROOT / "tests" / member).rglob("test_*.py"))]


def test_the_folder_of_the_operator_does_not_shadow_the_standard_library() -> None:
    command = [sys.executable, "-S", "-c", "import operator; print(operator.__file__)"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=30).stdout
    assert not Path(shown.strip()).is_relative_to(ROOT / "operator")


def test_no_folder_of_the_repository_or_of_tests_is_a_package() -> None:
    assert [*ROOT.glob("*/__init__.py"), *ROOT.glob("*/src/__init__.py"), *(ROOT / "tests").rglob("__init__.py")] == []


def test_the_layers_and_the_purity_of_decisions_hold() -> None:
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("test", TESTS, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_every_test_file_stands_where_its_source_does(test: Path) -> None:
    member, *folders, file = test.relative_to(ROOT / "tests").parts
    source = PAGE if (member, *folders) == ("view", "web") else PACKAGES[member].joinpath(*folders)
    modules = {path.stem.strip("_") for path in source.iterdir() if path.suffix in {".py", ".ts"} or path.is_dir()}
    subject = file.removeprefix("test_").removesuffix(".py")
    assert any(subject == name or subject.startswith(f"{name}_") for name in modules | OF_A_WHOLE_PACKAGE)


def test_each_decision_has_a_number_of_its_own() -> None:
    records = [path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md")]
    assert len({name[:4] for name in records}) == len(records), sorted(records)
    for name in records:
        assert (ROOT / "docs/decisions" / name).read_text().startswith(f"# {name[:4]} ")


def test_the_files_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`(\w+)/([\w./]+)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    in_members = [(member, path) for member, path in named if member in PACKAGES]
    assert in_members
    for member, path in in_members:
        assert (PACKAGES[member] / path).exists() or (ROOT / member / path).exists(), f"{member}/{path}"
