"""The table of places and schemes in docs/buckets.md, beside the tests that pytest collects, and the code."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from typing import NamedTuple

from cluster.paths import REPOSITORY

SCHEMES = ("gs", "s3", "az")
TESTS = REPOSITORY / "tests"
FIXTURES = re.compile(r"\bbucket_url: str\b|servers\.buckets import BUCKETS\b")


class PlaceRow(NamedTuple):
    """A row of the table: folders of code, schemes, and its test."""

    place: str
    code: str
    gs: str
    s3: str
    az: str
    test: str

    @property
    def tested(self) -> set[str]:
        """The schemes that its test has."""
        return {scheme for scheme, cell in zip(SCHEMES, self[2:5], strict=True) if cell == "yes"}


def rows() -> list[PlaceRow]:
    page = (REPOSITORY / "docs/buckets.md").read_text()
    table = page.partition("## Places and schemes")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return [PlaceRow(*row[:5], row[5].strip("`")) for row in cells[2:]]


def test_each_place_has_a_test_with_the_schemes_of_its_row() -> None:
    names = {row.test.partition("::")[0] for row in rows()}
    files = sorted(str((REPOSITORY if name.startswith("e2e/") else TESTS) / name) for name in names)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    schemes = defaultdict[str, set[str]](set)
    for line in done.stdout.splitlines():
        test, bracket, values = line.partition("[")
        if bracket:
            schemes[test.removeprefix("tests/")] |= set(SCHEMES) & set(values.rstrip("]").split("-"))
    assert {row.test: schemes[row.test] for row in rows()} == {row.test: row.tested for row in rows()}, done.stdout


def test_each_test_over_the_buckets_is_in_the_table() -> None:
    listed = {row.test.partition("::")[0] for row in rows()}
    using = {
        path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py") if FIXTURES.search(path.read_text())
    }
    assert using <= listed


def test_each_folder_that_opens_a_store_is_in_the_table() -> None:
    listed = {folder for row in rows() for folder in row.code.split(", ")}
    opening = set[str]()
    for path in REPOSITORY.glob("*/src/*/**/*.py"):
        if "open_store(" in path.read_text():
            member, _, _, *below = path.relative_to(REPOSITORY).parts
            opening.add(f"{member}/{below[0]}")
    assert opening - {"cli/xprofiler"} <= listed, "xprofiler has the flags of Google's command line"
