"""Tests run with the oldest Kubernetes that the charts accept, with the newest, and with any number."""

import os
import subprocess
import sys

import pytest
import yaml
from cluster.paths import E2E
from cluster.progress import ClusterError
from cluster.versions import BUILT, TESTED, chosen
from release.parts import PARTS

SHOW = "from cluster.tools import TOOLS; print(TOOLS['kube-apiserver'].version, len(TOOLS['kube-apiserver'].sources))"


def minor(version: str) -> int:
    return int(version.split(".")[1])


def test_a_version_is_chosen_by_name_or_number() -> None:
    assert chosen("") == BUILT
    assert chosen("oldest") == TESTED["oldest"]
    assert chosen("1.33.6") == "1.33.6"
    with pytest.raises(ClusterError, match=r"MLDIAG_KUBERNETES=1\.33: not a version; use oldest, newest or a number"):
        chosen("1.33")


def test_the_oldest_version_is_that_of_the_charts() -> None:
    for part in PARTS:
        accepted = yaml.safe_load((part.chart / "Chart.yaml").read_text())["kubeVersion"]
        assert accepted == f">=1.{minor(TESTED['oldest'])}.0-0"
    assert minor(TESTED["oldest"]) < minor(BUILT) < minor(TESTED["newest"])


@pytest.mark.parametrize(("name", "shown"), [("", f"{BUILT} 2"), ("newest", f"{TESTED['newest']} 1")])
def test_tools_follow_the_variable_and_only_the_pinned_version_is_built(name: str, shown: str) -> None:
    environment = {**os.environ, "MLDIAG_KUBERNETES": name, "PYTHONPATH": str(E2E)}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == shown
