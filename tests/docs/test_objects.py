"""Objects in the pages are valid: those of Kubernetes and those of this product."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from release.schemas import PROMETHEUS, kubeconform
from support.programs.documents import blocks

ROOT = Path(__file__).parents[2]


def manifests() -> list[tuple[str, str]]:
    """Return the blocks that are objects, each with its place."""
    return [
        (f"{page.relative_to(ROOT)}:{block.line}", block.text)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for block in blocks(page.read_text())
        if block.language == "yaml"
        and any(
            isinstance(each, dict) and {"apiVersion", "kind"} <= each.keys() for each in yaml.safe_load_all(block.text)
        )
    ]


@pytest.mark.parametrize("text", [text for _, text in manifests()], ids=[place for place, _ in manifests()])
def test_an_object_matches_its_schema(text: str) -> None:
    assert kubeconform(text, (ROOT / "crds").glob("*.yaml"), skipped=PROMETHEUS) == ""


def test_pages_have_objects() -> None:
    assert {place.partition(":")[0] for place, _ in manifests()} >= {"docs/how-to/tenants.md"}
