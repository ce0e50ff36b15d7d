"""Rights of the caller in a namespace, by SelfSubjectAccessReview."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.names import GROUP
from mldiagnostics_kube.client.apiserver import path_to

from mldiagnostics_cli.doctor.finding import broken, fine

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.doctor.finding import DoctorFinding


REVIEWS = path_to("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
WHO = path_to("authentication.k8s.io", "v1", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class _Purpose:
    """Rights that one use needs, and the role that has them."""

    use: str
    role: str
    rights: tuple[tuple[str, str, str, str], ...]
    """Verb, API group, resource and subresource."""


PURPOSES = (
    _Purpose(
        "see runs",
        "mldiagnostics-connection-operator-view",
        (("list", GROUP, "mlruns", ""), ("get", GROUP, "mlruns", ""), ("watch", GROUP, "mlruns", "")),
    ),
    _Purpose(
        "capture",
        "mldiagnostics-connection-operator-capture",
        (
            ("create", GROUP, "mldiagnosticsconnections", ""),
            ("get", GROUP, "mldiagnosticsconnections", ""),
            ("watch", GROUP, "mldiagnosticsconnections", ""),
            ("patch", GROUP, "mldiagnosticsconnections", ""),
        ),
    ),
    _Purpose("see pods", "view", (("get", "", "pods", ""), ("list", "", "pods", ""), ("get", "", "pods", "log"))),
    _Purpose("reach pods", "edit", (("create", "", "pods", "portforward"),)),
)


async def check_rights(cluster: Cluster) -> list[DoctorFinding]:
    """Return a finding for each use. Raises `ClusterError`."""
    return list(await asyncio.gather(*(_check(cluster, purpose) for purpose in PURPOSES)))


async def _check(cluster: Cluster, purpose: _Purpose) -> DoctorFinding:
    allowed = await asyncio.gather(*(_may(cluster, *right) for right in purpose.rights))
    lacking = [right for right, may in zip(purpose.rights, allowed, strict=True) if not may]
    part = f"right to {purpose.use}"
    if not lacking:
        return fine(part, f"in namespace '{cluster.namespace}'")
    shown = ", ".join(f"{verb} {'/'.join(filter(None, (resource, sub)))}" for verb, _, resource, sub in lacking)
    remedy = (
        f"an administrator runs: kubectl create rolebinding mldiag-{purpose.use.replace(' ', '-')} "
        f"-n {cluster.namespace} --clusterrole={purpose.role} {await _subject(cluster)}"
    )
    return broken(part, f"missing in namespace '{cluster.namespace}': {shown}", remedy)


async def _may(cluster: Cluster, verb: str, group: str, resource: str, sub: str) -> bool:
    attributes = {
        "namespace": cluster.namespace,
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": sub,
    }
    body: dict[str, Any] = {"spec": {"resourceAttributes": attributes}}
    review = await cluster.client.request("POST", REVIEWS, body=_typed("authorization.k8s.io/v1", "AccessReview", body))
    return bool((review.get("status") or {}).get("allowed"))


async def _subject(cluster: Cluster) -> str:
    """Return the caller as an option of `kubectl create rolebinding`."""
    review = await cluster.client.request("POST", WHO, body=_typed("authentication.k8s.io/v1", "Review", {}))
    name = str((review.get("status") or {}).get("userInfo", {}).get("username", "NAME"))
    account = name.removeprefix("system:serviceaccount:")
    return f"--serviceaccount={account}" if account != name else f"--user={name}"


def _typed(version: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": f"SelfSubject{kind}", **body}
