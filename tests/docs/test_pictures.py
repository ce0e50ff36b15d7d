"""Pictures of the pages: each one that a page shows exists, none is left over, and none loads anything."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs/pictures"
MOST_BYTES = 150_000


def shown() -> set[Path]:
    """Return the pictures that pages show."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {
        (page.parent / link.partition("#")[0]).resolve()
        for page in pages
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    }


def test_pages_show_the_pictures_that_exist() -> None:
    assert shown() == set(PICTURES.iterdir())


def test_a_picture_for_light_pages_has_one_for_dark_pages() -> None:
    names = {picture.name for picture in PICTURES.iterdir()}
    light = {name for name in names if "-light." in name}
    assert light
    assert {name.replace("-light.", "-dark.") for name in light} == {name for name in names if "-dark." in name}


def test_pictures_are_small_and_load_nothing() -> None:
    for picture in PICTURES.iterdir():
        assert picture.stat().st_size < MOST_BYTES, picture.name
        if picture.suffix == ".svg":
            assert not re.search(r"url\(\s*[\"']?https?:|href=\"https?:|<script", picture.read_text()), picture.name
