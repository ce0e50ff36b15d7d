"""Workflows run targets of the Makefile that exist, with pinned actions and bounded jobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z0-9 -]+):(?!=)", MAKEFILE, re.MULTILINE))
TARGETS = {name for names in TARGETS for name in names.split()}

each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> dict[str, Any]:
    by_name: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return by_name


def commands(path: Path) -> list[tuple[str, str]]:
    """Return the name of the job and the text of each command."""
    return [(name, step["run"]) for name, job in jobs(path).items() for step in job["steps"] if "run" in step]


@each_workflow
def test_each_command_of_make_is_a_target(path: Path) -> None:
    used = []
    for job, command in commands(path):
        text = command.replace("${{ github.job }}", job)
        used += re.findall(r"(?:^|\s)make ([a-z-]+)", text)
    assert used
    assert set(used) <= TARGETS, set(used) - TARGETS


@each_workflow
def test_actions_are_pinned_by_commit_and_jobs_have_a_limit(path: Path) -> None:
    actions = re.findall(r"uses: (\S+)(.*)", path.read_text())
    assert actions
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name) and "# v" in rest for name, rest in actions)
    for job in jobs(path).values():
        assert job["timeout-minutes"] <= 120
        assert job["runs-on"].startswith("ubuntu-")


@each_workflow
def test_a_token_may_only_read_unless_a_job_says_why(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    granted = re.findall(r"^ +[a-z-]+: write(.*)$", path.read_text(), re.MULTILINE)
    assert all(reason.startswith(" # ") for reason in granted)


def test_the_release_makes_every_kind_of_artifact_before_it_publishes() -> None:
    [text] = [path for path in WORKFLOWS if path.stem == "release"]
    used = [name for _, command in commands(text) for name in re.findall(r"(?:^|\s)make ([a-z]+)", command)]
    assert used == ["notes", "wheels", "package", "publish", "publish", "announce"]
