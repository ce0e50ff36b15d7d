"""Commands of clouds in the pages have only flags that the programs of the clouds document."""

from __future__ import annotations

import json

import pytest
from support.programs.cloud_commands import RECORDED, cloud_lines, flags_in

FLAGS: dict[str, list[str]] = json.loads(RECORDED.read_text())
LINES = [*cloud_lines()]


@pytest.mark.parametrize(
    "words", [words for _, words in LINES], ids=[f"{place} {' '.join(words)}" for place, words in LINES]
)
def test_a_line_has_only_documented_flags(words: list[str]) -> None:
    line = " ".join(words)
    commands = [command for command in FLAGS if line.startswith(f"{command} ")]
    assert commands, f"{line}: not recorded; run python -m support.programs.cloud_commands"
    assert flags_in(words) - {*FLAGS[max(commands, key=len)]} == set()


def test_the_record_has_no_command_that_no_page_has() -> None:
    assert {
        command for command in FLAGS if not any(" ".join(words).startswith(f"{command} ") for _, words in LINES)
    } == set()
