"""The site of the documentation: all pages, no broken link, nothing from the network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.programs import environments

ROOT = Path(__file__).parents[2]
SOURCE = "docs/generate/site.py"
NOT_IN_MENU = {"decisions"}
"""Folders whose pages are reached by links of other pages."""


def gathered(folder: Path) -> subprocess.CompletedProcess[str]:
    """Gather the pages of the site in a folder."""
    command = [sys.executable, str(ROOT / SOURCE), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def menu(entries: object) -> set[str]:
    """Return the pages of a menu."""
    if isinstance(entries, str):
        return {entries}
    parts = entries.values() if isinstance(entries, dict) else entries
    assert isinstance(parts, (list, type({}.values())))
    return {page for part in parts for page in menu(part)}


def test_the_menu_has_every_page() -> None:
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    expected = {page for page in pages if page.split("/")[0] not in NOT_IN_MENU}
    assert menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]) == expected


@pytest.mark.peers
def test_the_site_has_no_broken_link_and_loads_nothing_from_the_network(tmp_path: Path) -> None:
    done = gathered(tmp_path / "docs")
    assert done.returncode == 0, done.stderr
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text())
    python = environments.interpreter("site")
    command = [str(python), "-m", "zensical", "build", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = [*(tmp_path / "site").rglob("*.html")]
    assert len(pages) > 100
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?https?:|<link[^>]+rel=\"?stylesheet[^>]+href=\"?https?:")
    assert [str(page) for page in pages if loaded.search(page.read_text())] == []
    assert "first-run" in json.dumps(json.loads((tmp_path / "site/search.json").read_text()))
