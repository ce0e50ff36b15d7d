"""Rights on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_kube.client.apiserver import path_to

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient

GROUP = "rbac.authorization.k8s.io"


async def grant(admin: ApiClient, namespace: str, subject: str, *rules: dict[str, Any], kind: str = "User") -> None:
    """Grant rules to a user or group in a namespace."""
    await admin.create(
        path_to(GROUP, "v1", "roles", namespace=namespace), {"metadata": {"name": subject}, "rules": list(rules)}
    )
    binding = {
        "metadata": {"name": subject},
        "subjects": [{"kind": kind, "name": subject, "apiGroup": GROUP}],
        "roleRef": {"kind": "Role", "name": subject, "apiGroup": GROUP},
    }
    await admin.create(path_to(GROUP, "v1", "rolebindings", namespace=namespace), binding)
