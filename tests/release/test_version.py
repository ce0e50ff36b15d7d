"""One file has the version; wheels, charts, images and documents follow it."""

import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from release.version import change, current, followers


def versions(repository: Path) -> dict[str, set[str]]:
    """Return the versions in the files that programs read."""
    versions_by_file = {}
    for path in repository.glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        siblings = [each.partition("==")[2] for each in project["dependencies"] if each.startswith("mldiagnostics")]
        versions_by_file[str(path.relative_to(repository))] = {project["version"], *siblings}
    for path in repository.glob("charts/*/Chart.yaml"):
        chart = yaml.safe_load(path.read_text())
        image = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])[0]["image"]
        versions_by_file[str(path.relative_to(repository))] = {
            chart["version"],
            chart["appVersion"],
            image.rpartition(":")[2],
        }
    return versions_by_file


def test_every_file_has_the_version_of_the_repository() -> None:
    versions_by_file = versions(REPOSITORY)
    assert len(versions_by_file) == 11
    assert set().union(*versions_by_file.values()) == {current()}


def test_a_new_version_is_written_everywhere(tmp_path: Path) -> None:
    for path in (REPOSITORY / "pyproject.toml", *followers()):
        copy = tmp_path / path.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    changed = change("7.8.9-rc.1", tmp_path)
    assert set().union(*versions(tmp_path).values()) == {"7.8.9-rc.1"} == {current(tmp_path)}
    assert set(changed) == {tmp_path / "pyproject.toml", *followers(tmp_path)}
    assert change("7.8.9", tmp_path) == changed
    assert set().union(*versions(tmp_path).values()) == {"7.8.9"}
    assert all(current() not in path.read_text() for path in changed)


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3.dev1", "01.2.3", "1.2.3+local", ""])
def test_a_version_that_a_chart_or_wheel_refuses_is_rejected(version: str) -> None:
    with pytest.raises(ClusterError, match=r"not of the form 1.2.3 or 1.2.3-rc.1"):
        change(version)
