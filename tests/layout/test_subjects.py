"""The check of commit subjects, on commits of real repositories."""

import os
import subprocess
from pathlib import Path

import pytest
from layout.subjects import findings, new_commits, problems

_LONG = "cli: " + "x" * 68


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("goodput: reject logs with several jobs unless --job is given", 0),
        ("cli, view: read runs through one source", 0),
        ("cli: " + "x" * 67, 0),
        (_LONG, 1),
        ("Take several jobs in one log for one never, and ask which", 1),
        ("sdk:close the queue", 1),
        ("Describe " + "x" * 68, 2),
    ],
)
def test_a_subject_has_an_area_and_at_most_72_characters(subject: str, number: int) -> None:
    assert len(list(problems(subject))) == number


def test_only_commits_that_the_main_branch_does_not_have_are_checked(tmp_path: Path) -> None:
    git = _Repository(tmp_path / "work")
    git.commit("Published before anybody measured its length " + "x" * 40)
    git("checkout", "-q", "-b", "change")
    assert new_commits(git.path) == []
    git.commit(f"sdk: {_LONG}", date="2020-01-01T00:00:00Z")
    git.commit("sdk: close the queue")
    git.commit(_LONG)
    assert [subject for _, subject in new_commits(git.path)] == [_LONG, "sdk: close the queue"]
    assert [line.partition(" ")[2] for line in findings(new_commits(git.path))] == [
        f"{_LONG!r}: 73 characters; write at most 72, and the reason in the body"
    ]


def test_a_shallow_clone_of_a_branch_has_no_commits_to_check(tmp_path: Path) -> None:
    git = _Repository(tmp_path / "work")
    git.commit("sdk: close the queue")
    git("checkout", "-q", "-b", "change")
    git.commit(_LONG)
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth=1", "--branch=change", git.path.as_uri(), str(clone))
    assert new_commits(clone) == []


class _Repository:
    """A git repository whose commits are empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str, date: str = "2026-12-01T00:00:00Z") -> None:
        names = {
            f"GIT_{role}_{part}": "test@localhost" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **names, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        subprocess.run(["git", "-C", str(self.path), *arguments], check=True, env=environment, capture_output=True)

    def commit(self, subject: str, *, date: str = "2026-12-01T00:00:00Z") -> None:
        self("commit", "-q", "--allow-empty", "-m", subject, date=date)
