"""Helm releases on an API server, and their objects."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.envtest import ApiServer
from cluster.tools import tool
from release.parts import NAMESPACE, Part
from release.render import HOOK, helm
from support.cluster.impersonation import Requests

KINDS = {
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "ConfigMap": "/api/v1/configmaps",
    "Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}

Named = set[tuple[str, str]]
"""Objects by kind and name."""


@dataclass(frozen=True, slots=True)
class Release:
    """Release of a part; the default name and namespace are those of the documentation."""

    server: ApiServer
    part: Part
    name: str = ""
    namespace: str = NAMESPACE

    def helm(self, verb: str, *arguments: str, chart: Path | None = None) -> str:
        """Run a helm command that takes release and chart."""
        return helm(verb, self.name or self.part.name, *self._where(), *arguments, chart=chart or self.part.chart)

    def uninstall(self, *arguments: str) -> None:
        """Uninstall the release."""
        self._without_chart("uninstall", *arguments)

    def rollback(self, revision: int) -> None:
        """Return to an earlier revision of the release."""
        self._without_chart("rollback", str(revision))

    def installed(self, requests: Requests) -> Named:
        """Return the objects in the cluster with the release's label."""
        label = f"?labelSelector=app.kubernetes.io/instance={self.part.name}"
        return {
            (kind, item["metadata"]["name"])
            for kind, path in KINDS.items()
            for item in requests("GET", path + label).body["items"]
        }

    def _without_chart(self, verb: str, *arguments: str) -> None:
        command = [str(tool("helm")), verb, self.name or self.part.name, *self._where(), *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def _where(self) -> tuple[str, str]:
        return f"--kubeconfig={self.server.kubeconfig}", f"--namespace={self.namespace}"


def wanted(objects: list[dict[str, Any]]) -> Named:
    """Return the expected objects of a release: all except hooks and the namespace."""
    permanent = [item for item in objects if HOOK not in item["metadata"].get("annotations", {})]
    return {(item["kind"], item["metadata"]["name"]) for item in permanent if item["kind"] != "Namespace"}
