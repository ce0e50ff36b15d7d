"""Check the subjects of the commits that the main branch does not have; `python -m layout.subjects` prints them."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
MAIN_BRANCHES = ("origin/main", "main")
SINCE = "2026-11-25T12:00:00Z"
"""Older commits had no check, and commits of the main branch cannot be changed."""
LONGEST_SUBJECT = 72

_AREAS = re.compile(r"[a-z]+(?:, [a-z]+)*: [^ ]")


def problems(subject: str) -> Iterator[str]:
    """Yield what is to be changed in a subject."""
    if not _AREAS.match(subject):
        yield "begin with the area: 'sdk: …', or 'cli, view: …'"
    if len(subject) > LONGEST_SUBJECT:
        yield f"{len(subject)} characters; write at most {LONGEST_SUBJECT}, and the reason in the body"


def new_commits(repository: Path) -> list[tuple[str, str]]:
    """Return hash and subject of the commits that the main branch does not have; merges are left out.

    A clone that knows no main branch, such as a shallow one of another branch, has none.
    """
    known = next((each for each in MAIN_BRANCHES if _git(repository, "rev-parse", "--verify", "-q", each)), None)
    if known is None:
        return []
    log = _git(repository, "log", "--no-merges", f"--since={SINCE}", "--format=%h %s", "HEAD", "--not", known)
    return [(commit, subject) for commit, _, subject in (line.partition(" ") for line in log.splitlines())]


def findings(commits: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each problem."""
    return [f"{commit} {subject!r}: {each}" for commit, subject in commits for each in problems(subject)]


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def main() -> int:
    """Print the problems, and return the exit code."""
    lines = findings(new_commits(REPOSITORY))
    print("".join(f"{line}\n" for line in lines), end="")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
