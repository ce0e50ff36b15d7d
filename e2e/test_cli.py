"""`mldiag` on a cluster, as a person with a shell uses it: captures in every way, and runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from cli_scene import command_line
from demo.kubectl import eventually
from mldiagnostics_cli.exit_codes import INTERRUPTED
from scene import NAMESPACE, RESOURCE
from support.programs.terminals import in_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.provider import Provider
    from demo.kubectl import Kubectl
    from support.programs.command_line import CommandLine

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "training")]

HERE = f"--namespace={NAMESPACE}"
BRIEF = ("-d", "500ms")
JANE = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
MAY_FORWARD = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create", "get"]},
]


@pytest.fixture
def mldiag(running_cluster: Provider, tmp_path: Path) -> CommandLine:
    """The command line with the administrator's kubeconfig, in the namespace of the tests."""
    return command_line(running_cluster, tmp_path, NAMESPACE)


def traces(mldiag: CommandLine, session: str) -> list[str]:
    """Return the hosts of a session on this machine."""
    files = (mldiag.folder / "profiles/plugins/profile" / session).glob("*.xplane.pb")
    return sorted(file.name.removesuffix(".xplane.pb") for file in files)


def captured(mldiag: CommandLine, *arguments: str) -> Any:
    """Return the document of a capture that has succeeded."""
    return mldiag.document("capture", *arguments, *BRIEF)


@pytest.fixture
def browser(mldiag: CommandLine) -> Iterator[Path]:
    """The file of the pages that `--open` opens; the servers of XProf end with the test."""
    program, pages = mldiag.folder / "browser", mldiag.folder / "opened"
    program.write_text(f'#!/bin/sh\necho "$1" >> {pages}\n')
    program.chmod(0o755)
    yield pages
    mldiag.run("xprof", "delete", "profiles", "--on", "local", "--yes")


def test_a_run_is_listed_shown_captured_by_its_id_and_opened(
    mldiag: CommandLine, training: list[str], browser: Path
) -> None:
    def active() -> list[dict[str, Any]]:
        rows = mldiag.document("runs", "list", "-n", NAMESPACE, "--phase", "Active")
        selected = [row for row in rows if (row["workloadRef"] or {}).get("name") == "training"]
        return selected if len(selected) == 1 else []

    [run] = eventually(active, "the run of the JobSet", deadline_s=60)
    shown = mldiag.document("runs", "get", run["runId"][:12], "-n", NAMESPACE)
    assert (shown["runId"], shown["phase"]) == (run["runId"], "Active")
    result = captured(mldiag, run["runId"][:12], "--open")
    assert [target["pod"] for target in result["targets"]] == training
    assert result["reason"] == "Succeeded"
    assert result["directory"].startswith("volume:///")
    assert traces(mldiag, result["session"]) == training
    assert f"overview_page?run={result['session']}&" in browser.read_text()


def test_a_workload_is_captured_in_the_background(mldiag: CommandLine, kubectl: Kubectl, training: list[str]) -> None:
    [name] = mldiag.lines("capture", "jobset/training", "--ranks", "1", "--detach", *BRIEF)
    kubectl("wait", "--for=condition=Complete", name, HERE, "--timeout=60s", timeout_s=70)
    assert [each["pod"] for each in kubectl.get(name, HERE)["status"]["results"]] == [training[1]]


def test_a_user_without_rights_on_captures_captures_by_port_forward(
    running_cluster: Provider, kubectl: Kubectl, training: list[str], tmp_path: Path
) -> None:
    meta = {"name": "forwards", "namespace": NAMESPACE}
    role = {"apiGroup": JANE["apiGroup"], "kind": "Role", "name": "forwards"}
    group = f"{JANE['apiGroup']}/v1"
    kubectl.apply({"apiVersion": group, "kind": "Role", "metadata": meta, "rules": MAY_FORWARD})
    kubectl.apply({"apiVersion": group, "kind": "RoleBinding", "metadata": meta, "subjects": [JANE], "roleRef": role})
    jane = command_line(running_cluster, tmp_path, NAMESPACE, user="jane")
    refused = jane.failure("capture", "jobset/training", "--wait")
    assert "refuses the request" in refused
    assert "mldiagnosticsconnections" in refused
    result = captured(jane, "-l", "jobset.sigs.k8s.io/jobset-name=training", "--direct", "--session", "direct")
    assert [target["stem"] for target in result["targets"]] == training
    assert traces(jane, "direct") == training


def test_ctrl_c_in_a_terminal_cancels_the_capture_in_the_cluster(mldiag: CommandLine, kubectl: Kubectl) -> None:
    def running() -> list[dict[str, Any]]:
        captures = kubectl.items(RESOURCE, HERE)
        return [each for each in captures if each.get("status", {}).get("sessionId") == "cancelled"]

    command: list[str | Path] = [
        mldiag.script,
        "capture",
        "jobset/training",
        "--session",
        "cancelled",
        "-d",
        "60s",
        "-o",
        "json",
    ]
    with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment(), pipe=True) as process:
        eventually(running, "the capture", deadline_s=60)
        process.wait_for("capturing ")  # else it deletes the object
        process.press_ctrl_c()
        code, out = process.end()
    assert code == INTERRUPTED, process.shown
    assert "Cancelling the capture" in process.shown
    assert json.loads(out)["reason"] == "Cancelled"
    [made] = running()
    conditions = {each["type"]: each["reason"] for each in made["status"]["conditions"]}
    assert conditions["Complete"] == "Cancelled"


def test_a_run_that_was_made_by_hand_is_watched_and_deleted(mldiag: CommandLine, kubectl: Kubectl) -> None:
    meta = {"name": "by-hand", "namespace": NAMESPACE}
    kubectl.apply({"apiVersion": "diagon.gke.io/v1alpha1", "kind": "MLRun", "metadata": meta, "spec": {}})
    command: list[str | Path] = [mldiag.script, "runs", "watch", "by-hand", "-n", NAMESPACE]
    with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment()) as process:
        process.wait_for("PHASE")
        process.press_ctrl_c()
        code, _ = process.end()
    assert (code, "Traceback" in process.shown) == (INTERRUPTED, False), process.shown
    assert "no terminal to confirm it; pass --yes" in mldiag.failure(
        "runs", "delete", "by-hand", "-n", NAMESPACE, "--force"
    )
    mldiag.lines("runs", "delete", "by-hand", "-n", NAMESPACE, "--force", "--yes")
    assert not kubectl.exists("mlrun", "by-hand", HERE)
