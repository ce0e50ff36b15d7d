"""Permissions that a part used with its service account, from the audit log of the API server."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from cluster.envtest import ApiServer
from release.parts import NAMESPACE, Part
from support.cluster.impersonation import Requests

Permission = tuple[str, str, str, str]
"""Verb, group, resource, and the name of a single object or an empty string."""


def permissions(roles: Iterable[dict[str, Any]]) -> Iterator[Permission]:
    """Yield all permissions of Roles and ClusterRoles."""
    for rule in (rule for role in roles for rule in role["rules"]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield verb, group, resource, name


def kubeconfig(server: ApiServer, requests: Requests, part: Part, file: Path) -> Path:
    """Write the kubeconfig of a part's service account."""
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{part.name}/token"
    token = requests("POST", account, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.body["status"]["token"]}
    file.write_text(yaml.safe_dump(config))
    return file


def requests_of(server: ApiServer, part: Part) -> list[dict[str, Any]]:
    """Return the audited requests of a part's service account."""
    assert server.audit_log
    account = f"system:serviceaccount:{NAMESPACE}:{part.name}"
    events = (json.loads(line) for line in server.audit_log.read_text().splitlines() if line.endswith("}"))
    return [event for event in events if event["user"]["username"] == account and "objectRef" in event]


def used(server: ApiServer, part: Part, granted: set[Permission]) -> set[Permission]:
    """Return the permissions that allowed the part's requests, by object name if granted so."""
    permissions_used = set()
    for event in requests_of(server, part):
        target = event["objectRef"]
        resource = "/".join(each for each in (target["resource"], target.get("subresource")) if each)
        by_name = (event["verb"], target.get("apiGroup", ""), resource, target.get("name", ""))
        permissions_used.add(by_name if by_name in granted else (*by_name[:3], ""))
    return permissions_used


def refused(server: ApiServer, part: Part) -> list[str]:
    """Return the paths whose last request was forbidden."""
    codes = {event["requestURI"]: event["responseStatus"]["code"] for event in requests_of(server, part)}
    return [path for path, code in codes.items() if code == 403]
