"""Every helm command of the documentation renders the charts, whose schemas are strict, to valid objects."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cluster.tools import tool
from release.schemas import PROMETHEUS, kubeconform
from release.version import current
from support.programs.documents import blocks
from support.suite.isolation import of_programs

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LINE = re.compile(r"^ *(?:\$ )?(helm (?:install|upgrade|template) .*)$", re.MULTILINE)
# `helm template` takes the flags of the others but those about an installed release. Packaged charts are those here.
SHELL = r"""
helm() {
  shift
  local words=()
  for word; do [[ $word == --install || $word == --reuse-values ]] || words+=("$word"); done
  "$HELM" template --kube-version 1.34 "${words[@]}"
}
kubectl() { cat; }
BUCKET=my-runs REGISTRY=registry.example.com/ml PROJECT=my-project
"""


def commands() -> list[tuple[Path, str]]:
    """Return each command with its page."""
    return [
        (page, line.replace("dist/charts/", "charts/").replace(f"-{current()}.tgz", ""))
        for page in PAGES
        for block in blocks(page.read_text())
        for line in LINE.findall(block.text.replace("\\\n", ""))
    ]


def test_pages_have_such_lines() -> None:
    pages = {str(page.relative_to(ROOT)) for page, _ in commands()}
    assert pages >= {"README.md", "docs/install.md", "docs/buckets.md", "docs/how-to/gke.md", "docs/how-to/tenants.md"}


@pytest.mark.parametrize(("page", "command"), commands(), ids=lambda each: getattr(each, "stem", each))
def test_a_line_renders_valid_objects(page: Path, command: str, tmp_path: Path) -> None:
    """The files of its page are in the folder, so that a line can use them as values."""
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    for block in blocks(page.read_text()):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
    source = f"{SHELL}part=mldiagnostics-injection-webhook\n{command}"
    environment = {**of_programs(), "HELM": str(tool("helm"))}
    done = subprocess.run(
        ["bash", "-euc", source], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page}: {command}: {done.stderr}"
    assert "--show-only" in command or "kind: Deployment" in done.stdout
    assert kubeconform(done.stdout, (ROOT / "crds").glob("*.yaml"), skipped=PROMETHEUS) == ""
