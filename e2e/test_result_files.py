"""Files of the operator's volume for the users of one namespace: traces and records through the API server."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import claim_scene
import pytest
from cli_scene import command_line
from demo import following
from demo.kubectl import eventually
from demo.on_cluster import start_training
from injection_scene import temporary_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.provider import Provider
    from demo.kubectl import Kubectl
    from support.programs.command_line import CommandLine

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-files-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
RBAC = "rbac.authorization.k8s.io"
ROLES = {"jane": "edit", "vera": "view"}
"""Role of each user in the namespace; jane has `edit` alone, which includes no right on pods of the operator."""


@pytest.fixture(scope="module")
def operator_values(claim: str) -> dict[str, Any]:
    """Values of an operator that serves the files of its claim."""
    return claim_scene.values(claim)


@pytest.fixture(scope="module")
def users(running_cluster: Provider, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CommandLine]:
    """The command line of each user, and of the administrator."""

    def of(name: str, user: str) -> CommandLine:
        return command_line(running_cluster, tmp_path_factory.mktemp(name), NAMESPACE, user=user)

    return {user: of(user, user) for user in ROLES} | {"admin": of("admin", "")}


@pytest.fixture(scope="module")
def captured(
    kubectl: Kubectl,
    users: dict[str, CommandLine],
    prepared: None,  # noqa: ARG001 - must exist
    operator: None,  # noqa: ARG001
    webhook: None,  # noqa: ARG001
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Train in the namespace, and capture as the administrator; yield the pods and the capture."""
    with temporary_namespace(kubectl, NAMESPACE, {}):
        for user, role in ROLES.items():
            kubectl.apply(binding(user, role))
        pods = start_training(kubectl, NAMESPACE, REST_SECONDS=0.1)
        [run] = kubectl.items("mlruns", HERE)
        following.until_accounted(kubectl, NAMESPACE, run["spec"]["runId"])
        capture = users["admin"].document("capture", "jobset/training", "--duration=500ms", "--wait")
        eventually(lambda: users["jane"].document("profiles", "list", "training"), "the session", deadline_s=60)
        yield pods, capture


def binding(user: str, role: str) -> dict[str, Any]:
    """Return the RoleBinding that gives a user one of the roles of the cluster."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def test_a_user_with_edit_reads_the_results_of_the_namespace(
    users: dict[str, CommandLine], captured: tuple[list[str], dict[str, Any]]
) -> None:
    pods, capture = captured
    jane, session = users["jane"], f"training/{capture['session']}"
    [listed] = jane.document("profiles", "list", "training")
    assert listed["session"] == capture["session"]
    jane.lines("profiles", "download", session, "--to", "copy")
    traces = sorted(jane.folder.rglob("*.xplane.pb"))
    assert [trace.name.removesuffix(".xplane.pb") for trace in traces] == pods
    assert all(trace.stat().st_size for trace in traces)
    [account] = jane.document("goodput", "training")
    assert account["cumulative"]["goodput"] > 0
    assert jane.document("diagnose", session)["hosts"] == len(pods)


def test_a_user_with_view_learns_which_right_is_missing(
    users: dict[str, CommandLine], captured: tuple[list[str], dict[str, Any]]
) -> None:
    _, capture = captured
    refused = users["vera"].failure("profiles", "download", f"training/{capture['session']}", "--to", "copy")
    assert f"does not let you read files of namespace {NAMESPACE}" in refused


def test_a_user_of_one_namespace_reads_nothing_of_another(
    users: dict[str, CommandLine], captured: tuple[list[str], dict[str, Any]]
) -> None:
    _, capture = captured
    session = f"{capture['directory']}/{capture['session']}"
    refused = users["jane"].failure("profiles", "download", session, "-n", "default", "--to", "copy")
    assert "does not let you read files of namespace default" in refused
