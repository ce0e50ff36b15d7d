"""Blocks of all pages: code compiles, and data is of its format."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from support.programs.documents import Block, blocks

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
"""Its signatures and usages are not programs; `make check` compares them with the code."""
DECISIONS = "/decisions/"
EXECUTED = tuple(f"docs/{part}/" for part in ("explanation", "how-to", "moving-in", "tutorials"))
"""Pages of `test_pages.py`."""
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if REFERENCE not in page.parents),
]


def is_bash(text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CHECKS: dict[str, Callable[[str], object]] = {
    "bash": is_bash,
    "json": json.loads,
    "python": lambda text: compile(text, "block", "exec"),
    "yaml": lambda text: [*yaml.safe_load_all(text)],
}
LANGUAGES = {*CHECKS, "console", "dockerfile", "text", ""}
BLOCKS = [(f"{page.relative_to(ROOT)}:{block.line}", block) for page in PAGES for block in blocks(page.read_text())]


@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_a_block_is_valid_in_its_language(block: Block) -> None:
    assert block.language in LANGUAGES
    if check := CHECKS.get(block.language):
        check(block.text)


def test_each_block_of_a_page_for_users_has_a_language() -> None:
    pages = [
        (place, block) for place, block in BLOCKS if place.startswith(("docs/", "README")) and DECISIONS not in place
    ]
    assert [place for place, block in pages if not block.language] == []


def test_commands_run_or_say_why_not() -> None:
    commands = [(place, block) for place, block in BLOCKS if block.language == "console"]
    assert [place for place, block in commands if not block.reason and not place.startswith(EXECUTED)] == []


def test_no_fence_is_missed() -> None:
    for page in PAGES:
        text = page.read_text()
        fences = [line for line in text.splitlines() if line.startswith("```")]
        assert len(fences) == 2 * len(blocks(text)), page
