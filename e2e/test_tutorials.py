"""Tutorials for a cluster: each command runs on one, and prints the output that its page shows."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import claim_scene
import pytest
from cluster.provider import Provider
from cluster.tools import tool
from demo.kubectl import Kubectl
from support.programs.documents import Shell, environment, run_page

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook", "prepared")]

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in (ROOT / "docs/tutorials").glob("*.md") if environment(page.read_text()) == "cluster")
NAMESPACE = "ml"


@pytest.fixture(scope="module")
def operator_values(claim: str) -> dict[str, Any]:
    """Values of an operator whose Jobs see its traces."""
    return claim_scene.values(claim)


@pytest.fixture
def folder(tmp_path: Path, kubectl: Kubectl) -> Iterator[Path]:
    """A directory with the examples of the checkout, and no namespace of an earlier page."""
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_s=120)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    yield tmp_path
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_sees_the_output_that_the_tutorial_shows(page: Path, running_cluster: Provider, folder: Path) -> None:
    programs = (tool("kubectl").parent, Path(sys.executable).parent)
    variables = {
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "KUBECONFIG": str(running_cluster.kubeconfig),
    }
    with closing(Shell(folder, variables)) as shell:
        run_page(page, shell, folder)
