"""Servers of XProf as objects of a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics_kube.client.apiserver import NotFound, path_to

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.programs.command_line import CommandLine

pytestmark = pytest.mark.apiserver

PLACE = "gs://bucket/runs/Trainer"
CREATE = ("xprof", "create", PLACE, "--on", "kubernetes", "--image", "xprof:2.24", "--no-wait")
RBAC = "rbac.authorization.k8s.io"
REVIEWS = path_to("authorization.k8s.io", "v1", "subjectaccessreviews")
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
CONSTRAINTS: dict[str, Any] = {
    "metadata": {"name": "securitycontextconstraints.security.openshift.io"},
    "spec": {
        "group": "security.openshift.io",
        "scope": "Cluster",
        "names": {"kind": "SecurityContextConstraints", "plural": "securitycontextconstraints"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
START, END = "2026-11-22T10:00:00Z", "2026-11-22T12:00:00Z"


@pytest.fixture
async def where(api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path) -> tuple[str, ...]:
    """Options of a user whose only rights are those of the ClusterRole `edit` in the namespace."""
    user = f"editor-of-{namespace}"
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    for role in ("system:aggregate-to-edit", "system:aggregate-to-view"):  # of which a controller makes `edit`
        binding = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": [subject]}
        await admin.create(
            path_to(RBAC, "v1", "rolebindings", namespace=namespace), {"metadata": {"name": role}} | binding
        )
    review = {"user": user, "resourceAttributes": {"namespace": namespace, "group": "batch", "resource": "jobs"}}
    for verb in ("create", "list"):  # one of each role: the API server notices them later
        review["resourceAttributes"] |= {"verb": verb}
        while not (await admin.create(REVIEWS, {"spec": review}))["status"]["allowed"]:  # noqa: ASYNC110 - the change is in another process
            await asyncio.sleep(0.05)
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = user
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    return ("-n", namespace, "--kubeconfig", str(kubeconfig))


async def test_a_server_is_made_once_listed_and_deleted(
    mldiag: CommandLine, admin: ApiClient, namespace: str, where: tuple[str, ...]
) -> None:
    await admin.patch(path_to("", "v1", "namespaces", name=namespace), {"metadata": {"labels": RESTRICTED}})
    [made] = mldiag.document(*CREATE, "--machine-type", "c4-highmem-8", "--ingress-host", "xprof.example", *where)
    assert (made["name"], made["logDirectory"], made["state"]) == ("trainer", PLACE, "Starting")
    server = await one(admin, "batch", "cronjobs", namespace)
    job = await one(admin, "batch", "jobs", namespace)
    template = job["spec"]["template"]
    pod = {"metadata": {"name": "a", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    account = {"metadata": {"name": "default"}}  # that a controller makes in a whole cluster
    await admin.create(path_to("", "v1", "serviceaccounts", namespace=namespace), account)
    await admin.create(path_to("", "v1", "pods", namespace=namespace), pod)  # the pod is restricted
    for group, plural in (
        ("batch", "jobs"),
        ("", "services"),
        ("networking.k8s.io", "networkpolicies"),
        ("networking.k8s.io", "ingresses"),
    ):
        [owner] = (await one(admin, group, plural, namespace))["metadata"]["ownerReferences"]
        assert owner["uid"] == server["metadata"]["uid"]
    assert mldiag.document(*CREATE, *where)[0] == mldiag.document("xprof", "list", *where)[0]
    assert "a server in" in mldiag.failure(*CREATE, "--new", "--name", "trainer", *where)
    assert [each["name"] for each in mldiag.document(*CREATE, "--new", *where)] == ["trainer-2"]
    assert "2 servers of XProf are meant" in mldiag.failure("xprof", "connect", PLACE, *where)
    assert "no terminal to confirm it; pass --yes" in mldiag.failure("xprof", "delete", "trainer", *where)
    assert mldiag.lines("xprof", "delete", "trainer", "--yes", *where) == ["xprof trainer deleted"]
    assert [each["name"] for each in mldiag.document("xprof", "list", *where)] == ["trainer-2"]


async def test_a_cluster_that_assigns_ids_as_openshift_does_gets_a_pod_without(
    mldiag: CommandLine, admin: ApiClient, namespace: str, where: tuple[str, ...]
) -> None:
    async def context(name: str) -> dict[str, Any]:
        mldiag.document(*CREATE, "--new", "--name", name, *where)
        path = path_to("batch", "v1", "cronjobs", namespace=namespace, name=f"mldiag-xprof-{name}")
        pod: dict[str, Any] = (await admin.get(path))["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return dict(pod["securityContext"])

    assert (await context("fixed"))["runAsUser"] == 65532
    definition = path_to(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", name=CONSTRAINTS["metadata"]["name"]
    )
    await admin.create(path_to("apiextensions.k8s.io", "v1", "customresourcedefinitions"), CONSTRAINTS)
    try:
        async with asyncio.timeout(60):
            while not await is_served(admin, "security.openshift.io"):  # noqa: ASYNC110 - by another process
                await asyncio.sleep(0.05)
        assert await context("assigned") == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    finally:
        await admin.delete(definition, uid=(await admin.get(definition))["metadata"]["uid"])


async def is_served(admin: ApiClient, group: str) -> bool:
    try:
        await admin.get(f"/apis/{group}")
    except NotFound:
        return False
    return True


async def test_a_server_that_has_ended_is_started_again(
    mldiag: CommandLine, admin: ApiClient, namespace: str, where: tuple[str, ...]
) -> None:
    jobs = path_to("batch", "v1", "jobs", namespace=namespace)

    def state() -> str:
        [server] = mldiag.document("xprof", "list", *where)
        return str(server["state"])

    async def report(job: str, **status: Any) -> None:
        """Report the status of a Job, as its controller does."""
        await admin.patch(f"{jobs}/{job}/status", {"status": {"startTime": START, "active": 0, "ready": 0, **status}})

    mldiag.document(*CREATE, "--idle-after", "90m", *where)
    [pod] = await admin.items(jobs, lambda job: job["spec"]["template"]["spec"])
    assert pod["containers"][0]["args"] == ["8791", "5400.0", "xprof", "--logdir", PLACE]
    first, second, third = (f"mldiag-xprof-trainer-{number}" for number in (1, 2, 3))
    await report(first, active=1, ready=1)
    assert state() == "Running"
    ended = {"succeeded": 1, "completionTime": END, "conditions": conditions("SuccessCriteriaMet", "Complete")}
    await report(first, **ended)
    assert state() == "Idle"
    for _ in range(2):  # the second one leaves what starts
        assert mldiag.document(*CREATE, *where)[0]["state"] == state() == "Starting"
        assert await admin.names(jobs, most=9) == [first, second]
    await report(second, failed=7, conditions=conditions("FailureTarget", "Failed"))
    assert state() == "Failed"
    assert mldiag.document(*CREATE, *where)[0]["state"] == "Starting"
    assert await admin.names(jobs, most=9) == [first, second, third]


async def test_a_rejected_object_leaves_nothing(
    mldiag: CommandLine, admin: ApiClient, namespace: str, where: tuple[str, ...]
) -> None:
    message = mldiag.failure(*CREATE, "--ingress-host", "not a host", *where)
    assert "not a host" in message
    assert await admin.names(path_to("batch", "v1", "cronjobs", namespace=namespace), most=9) == []
    assert await admin.names(path_to("batch", "v1", "jobs", namespace=namespace), most=9) == []
    failure = mldiag.failure("xprof", "create", PLACE, "--on", "kubernetes", code=64)
    assert "--image: is not given; pass an image with the commands xprof and python3" in failure


def conditions(*types: str) -> list[dict[str, str]]:
    return [{"type": each, "status": "True", "lastTransitionTime": END} for each in types]


async def one(admin: ApiClient, group: str, plural: str, namespace: str) -> dict[str, Any]:
    [item] = await admin.items(path_to(group, "v1", plural, namespace=namespace), lambda each: each)
    return item
