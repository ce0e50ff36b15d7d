"""A part run as its own service account, and which of its permissions it has used, by the API server's audit log."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from cluster.envtest import ApiServer
from release.parts import NAMESPACE, Part
from support.impersonation import Requests

Permission = tuple[str, str, str, str]
"""Verb, group, resource, and name where only that object is meant."""


def permissions(roles: Iterable[dict[str, Any]]) -> Iterator[Permission]:
    """All that Roles and ClusterRoles allow."""
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
    """Requests for objects that a part's service account made, as the API server wrote them down."""
    assert server.audit_log
    account = f"system:serviceaccount:{NAMESPACE}:{part.name}"
    events = (json.loads(line) for line in server.audit_log.read_text().splitlines() if line.endswith("}"))
    return [event for event in events if event["user"]["username"] == account and "objectRef" in event]


def used(server: ApiServer, part: Part, granted: set[Permission]) -> set[Permission]:
    """The permissions that allowed the part's requests; one with the object's name comes before one without."""
    found = set()
    for event in requests_of(server, part):
        thing = event["objectRef"]
        resource = "/".join(each for each in (thing["resource"], thing.get("subresource")) if each)
        by_name = (event["verb"], thing.get("apiGroup", ""), resource, thing.get("name", ""))
        found.add(by_name if by_name in granted else (*by_name[:3], ""))
    return found


def refused(server: ApiServer, part: Part) -> list[str]:
    """Paths at which the part's last request was forbidden."""
    codes = {event["requestURI"]: event["responseStatus"]["code"] for event in requests_of(server, part)}
    return [path for path, code in codes.items() if code == 403]
