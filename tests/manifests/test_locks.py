"""Requirements of the images: the versions of the workspace, locked by hash, without an index URL."""

import re
import tomllib
from pathlib import Path

import pytest
from cluster.paths import REPOSITORY

EXTRAS: dict[str, dict[str, tuple[str, ...]]] = {
    "operator": {"operator": (), "kube": (), "api": (), "sdk": ("capture", "gcs")},
    "cli": {"cli": ("gcs",), "view": (), "kube": (), "api": (), "sdk": ("capture", "gcs")},
    "webhook": {"webhook": (), "kube": ("certificates",), "api": (), "sdk": ()},
}
"""Members of each image, with the extras that they need."""
LOCKS = (
    "requirements.lock",
    "cli/xprof/requirements.lock",
    *(f"{image}/{name}.lock" for image in EXTRAS for name in ("requirements", "build")),
)
each_image = pytest.mark.parametrize("image", EXTRAS)


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ \\]+)", (REPOSITORY / lock).read_text(), re.MULTILINE))


def wanted(pyproject: Path, *extras: str) -> set[str]:
    project = tomllib.loads(pyproject.read_text())["project"]
    optional = project.get("optional-dependencies", {})
    requirements = [*project["dependencies"], *(name for extra in extras for name in optional[extra])]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requirements}
    return {name for name in names if not name.startswith("mldiagnostics")}


@each_image
def test_the_image_has_the_versions_of_the_test_environment(image: str) -> None:
    workspace, locked = pins("requirements.lock"), pins(f"{image}/requirements.lock")
    assert {name: workspace.get(name) for name in locked} == locked


@each_image
def test_the_image_has_all_requirements_of_its_members(image: str) -> None:
    required = {
        name
        for member, extras in EXTRAS[image].items()
        for name in wanted(REPOSITORY / member / "pyproject.toml", *extras)
    }
    assert required - pins(f"{image}/requirements.lock").keys() == set(), "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_hashes_and_no_address(lock: str) -> None:
    text = (REPOSITORY / lock).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    assert [block.split()[0] for block in blocks if block.strip() and "--hash=sha256:" not in block] == []
