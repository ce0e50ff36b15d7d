"""Pages whose blocks all run, from the first to the last, as a reader runs them."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.programs.documents import Shell, blocks, differing

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for part in ("how-to", "moving-in", "tutorials") for page in (DOCS / part).glob("*.md"))


@pytest.mark.peers
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_sees_the_output_that_the_page_shows(page: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "JAX_PLATFORMS": "cpu"}
    with closing(Shell(tmp_path, environment)) as shell:
        for block in blocks(page.read_text()):
            place = f"{page.name}:{block.line}"
            if block.reason:
                continue
            if block.title:
                (tmp_path / block.title).write_text(block.text)
                continue
            assert block.language == "console", f"{place}: neither a file nor commands; say why it does not run"
            for command, expected in block.commands():
                shown, status = shell.run(command)
                assert status == block.exit_status, f"{place}: {command}: exits with {status}: {shown}"
                if expected:
                    problem = differing(shown, expected)
                    assert not problem, f"{place}: {command}: lacks {problem!r}:\n{shown}"
