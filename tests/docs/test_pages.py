"""Pages whose blocks all run, from the first to the last, as a reader runs them."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.programs import examples
from support.programs.documents import Shell, environment, run_page

DOCS = Path(__file__).parents[2] / "docs"
PARTS = ("explanation", "how-to", "moving-in", "tutorials")
PAGES = sorted(
    page for part in PARTS for page in (DOCS / part).glob("*.md") if environment(page.read_text()) != "cluster"
)


def variables(page: Path) -> dict[str, str]:
    """Return the variables of the commands of a page."""
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    name = environment(page.read_text())
    if not name:
        return {"PATH": ":".join(folders), "JAX_PLATFORMS": "cpu"}
    python = Path(examples.python(name))
    return {"PATH": ":".join([str(python.parent), *folders]), "PYTHONPATH": str(examples.ROOT / "sdk/src")}


@pytest.mark.peers
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_sees_the_output_that_the_page_shows(page: Path, plain_path: Path) -> None:
    with closing(Shell(plain_path, variables(page))) as shell:
        run_page(page, shell, plain_path)
