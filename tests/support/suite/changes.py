"""The files that git has for this checkout, and those that changed."""

import subprocess
from pathlib import Path

from support.suite.affected import affected
from support.suite.imports import graph

ROOT = Path(__file__).parents[3]
BRANCHES = ("origin/main", "main")


def changed_tests(base: str) -> list[str]:
    """Return the test files that the changes since a commit can affect, the nearest first."""
    changed = changed_files(base)
    texts = {path: (ROOT / path).read_text() for path in files("*.py") if (ROOT / path).is_file()}
    return affected(changed, graph(texts, changed))


def default_base() -> str:
    """Return where this branch left the main one; on the main branch, the commit before if nothing else changed."""
    for branch in BRANCHES:
        if base := _git("merge-base", "HEAD", branch, check=False):
            head, is_clean = _git("rev-parse", "HEAD"), not _git("status", "--porcelain")
            return "HEAD~1" if is_clean and base == head else base
    return "HEAD"


def changed_files(base: str) -> list[str]:
    """Return the files that differ from a commit, new ones and deleted ones included."""
    differing = _git("diff", "--name-only", "--no-renames", base).splitlines()
    return sorted({*differing, *files("--others")})


def files(*which: str) -> list[str]:
    """Return the files that git tracks, and new ones that it does not ignore."""
    options = ("--exclude-standard", "--cached", "--others") if "--others" not in which else ("--exclude-standard",)
    return _git("ls-files", *options, *which).splitlines()


def _git(*arguments: str, check: bool = True) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout.strip()
