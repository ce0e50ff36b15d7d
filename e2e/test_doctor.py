"""`mldiag doctor` and `mldiag explain` on an installation with the real charts, where everything is fine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster.provider import Provider

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

MLDIAG = Path(sys.executable).parent / "mldiag"
OF_THE_RUN = {"reporting", "profilable", "reports"}
"""Parts that depend on the programs in the pods."""


def test_a_whole_installation_is_fine(running_cluster: Provider, namespace: str, training: list[str]) -> None:
    rows = findings(running_cluster, namespace, training[0])
    assert [each for each in rows if each["state"] == "broken" and not is_of_run(each)] == []
    states = {each["part"]: each["state"] for each in rows}
    parts = {"client", "cluster", "resources", "operator", "webhook", "certificate", "labels", "injection"}
    parts |= {"control plane", "right to see runs", "right to capture", "right to see pods", "right to reach pods"}
    parts |= {"profiler", "network", "sdk of the pod"}
    assert {part: states.get(part) for part in parts} == dict.fromkeys(parts, "fine")


def test_the_jobset_of_the_example_is_a_run(running_cluster: Provider, namespace: str, training: list[str]) -> None:
    assert training
    explained = json.loads(mldiag(running_cluster, "explain", "jobset/training", "-n", namespace, "-o", "json").stdout)
    assert (explained["state"], explained["remedy"]) == ("Injected", None)
    assert "MLDIAG_RUN_ID" in explained["variables"]


def is_of_run(finding: dict[str, Any]) -> bool:
    """Return whether a finding depends on the pod, which may be older than the webhook."""
    return finding["part"] in OF_THE_RUN or finding["part"].startswith("run of ")


def findings(running_cluster: Provider, namespace: str, pod: str) -> list[dict[str, Any]]:
    """Return what the doctor finds about the cluster and a pod."""
    done = mldiag(running_cluster, "doctor", pod, "-n", namespace, "-o", "json")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.returncode == any(each["state"] == "broken" for each in rows), done.stderr
    return rows


def mldiag(running_cluster: Provider, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the cluster."""
    command = [str(MLDIAG), *arguments, "--kubeconfig", str(running_cluster.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
