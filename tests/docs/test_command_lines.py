"""Lines of `mldiag` in the pages: each command and each of its options exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pytest
from mldiagnostics_cli.program import program
from support.programs.documents import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINE: Final = re.compile(r"(?:^|[|;(] *|\$ |&& )((?:kubectl )?mldiag [^\n]*)", re.MULTILINE)
ENDS: Final = {"|", ">", "2>", ";", "&&", "||", "&", ")"}


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield each line with its place."""
    for page in PAGES:
        for block in blocks(page.read_text()):
            if block.language in {"bash", "console"}:
                for line in LINE.findall(block.text.replace("\\\n", "")):
                    yield f"{page.relative_to(ROOT)}:{block.line}", line


LINES = [*dict.fromkeys(command_lines())]


def words_of(line: str) -> list[str]:
    """Return the words of the command of a line, up to a pipe or another command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()>")
    lexer.whitespace_split = True
    words = [*lexer]
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[words.index("mldiag") + 1 : end]


@pytest.mark.parametrize("line", [line for _, line in LINES], ids=[f"{place} {line[:60]}" for place, line in LINES])
def test_a_line_has_only_commands_and_options_that_exist(line: str) -> None:
    command: click.Command = program
    words, context = words_of(line), click.Context(program, info_name="mldiag")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command, context = inner, click.Context(inner, info_name=name, parent=context)
    command.make_parser(context).parse_args(words)


def test_pages_have_such_lines() -> None:
    assert {place.partition(":")[0] for place, _ in LINES} >= {"README.md", "docs/cli.md", "docs/tutorials/laptop.md"}
