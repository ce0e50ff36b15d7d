"""The image's requirements are those of the workspace, locked by hash and bound to no index."""

import re
import tomllib
from pathlib import Path

import pytest
from cluster.paths import REPOSITORY

LOCKS = ("requirements.lock", "operator/requirements.lock", "operator/build.lock")


def pins(lock: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ \\]+)", (REPOSITORY / lock).read_text(), re.MULTILINE)
    return dict(found)


def wanted(pyproject: Path, *extras: str) -> set[str]:
    project = tomllib.loads(pyproject.read_text())["project"]
    optional = project.get("optional-dependencies", {})
    requirements = [*project["dependencies"], *(name for extra in extras for name in optional[extra])]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requirements}
    return {name for name in names if not name.startswith("mldiagnostics")}


def test_the_image_has_the_versions_that_the_tests_run_with() -> None:
    workspace, image = pins("requirements.lock"), pins("operator/requirements.lock")
    assert {name: workspace.get(name) for name in image} == image


def test_the_image_has_what_the_members_ask_for() -> None:
    asked = (
        wanted(REPOSITORY / "operator/pyproject.toml")
        | wanted(REPOSITORY / "api/pyproject.toml")
        | wanted(REPOSITORY / "sdk/pyproject.toml", "capture", "gcs")
    )
    assert asked - pins("operator/requirements.lock").keys() == set(), "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_hashes_and_no_address(lock: str) -> None:
    text = (REPOSITORY / lock).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    assert [block.split()[0] for block in blocks if block.strip() and "--hash=sha256:" not in block] == []
