"""Every `helm install` and `helm upgrade` of the documentation renders the charts, whose schemas are strict."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cluster.tools import tool
from support.programs.documents import blocks
from support.suite.isolation import of_programs

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LINE = re.compile(r"^ *(?:\$ )?(helm (?:install|upgrade) .*)$", re.MULTILINE)
# `helm template` takes the flags of both, but for those about an installed release; charts of a release are those here.
SHELL = r"""
helm() { shift; "$HELM" template --kube-version 1.34 "${@/--reuse-values/--skip-tests}"; }
BUCKET=my-runs REGISTRY=registry.example.com/ml PROJECT=my-project
"""


def commands() -> list[tuple[str, str]]:
    """Return each command with the name of its page."""
    return [
        (str(page.relative_to(ROOT)), line.replace("dist/charts/", "charts/").replace("-0.1.0.tgz", ""))
        for page in PAGES
        for block in blocks(page.read_text())
        for line in LINE.findall(block.text.replace("\\\n", ""))
    ]


def test_pages_have_such_lines() -> None:
    assert {page for page, _ in commands()} >= {"README.md", "docs/install.md", "docs/buckets.md", "docs/how-to/gke.md"}


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_line_renders_objects(page: str, command: str) -> None:
    source = f"{SHELL}part=mldiagnostics-injection-webhook\n{command}"
    environment = {**of_programs(), "HELM": str(tool("helm"))}
    done = subprocess.run(
        ["bash", "-euc", source], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page}: {command}: {done.stderr}"
    assert "kind: Deployment" in done.stdout
