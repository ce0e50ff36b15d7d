"""Check that the API server reaches the admission webhooks of a new controller."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from cluster.process import wait_until

_UNREACHABLE = "failed calling webhook"


def until_reached(kubectl: list[str], objects: list[dict[str, Any]], *, deadline_s: float = 60) -> None:
    """Wait until the API server reaches every webhook among `objects`.

    A Deployment is available before the node routes its Service, and some controllers create their certificate later.

    Args:
        kubectl: The command with its kubeconfig.
        objects: Applied objects: webhook configurations and the CRDs whose kinds they review.
        deadline_s: Longest wait for each kind, in seconds.

    Raises:
        ClusterError: a webhook is not reachable at the deadline.
    """
    for path, body in _reviewed(objects):
        wait_until(lambda: _reaches(kubectl, path, body), f"call of the webhook for {path}", deadline_s=deadline_s)  # noqa: B023 - used at once


def _reaches(kubectl: list[str], path: str, body: dict[str, Any]) -> bool:
    """Return whether a dry run of a creation gets an answer from the webhooks."""
    command = [*kubectl, "create", "--raw", f"{path}?dryRun=All", "--filename=-"]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, check=False)
    return _UNREACHABLE not in done.stdout + done.stderr


def _reviewed(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and minimal object of each kind whose creation is reviewed."""
    named = {
        (each["spec"]["group"], each["spec"]["names"]["plural"]): each["spec"]
        for each in objects
        if each["kind"] == "CustomResourceDefinition"
    }
    configurations = [each for each in objects if each["kind"].endswith("WebhookConfiguration")]
    rules = [rule for each in configurations for webhook in each["webhooks"] for rule in webhook["rules"]]
    for rule in rules:
        for group, version, plural in {
            (group, version, plural)
            for group in rule["apiGroups"]
            for version in rule["apiVersions"]
            for plural in rule["resources"]
            if (group, plural) in named and "CREATE" in rule["operations"]
        }:
            spec = named[group, plural]
            place = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
            version_name = version if version != "*" else spec["versions"][-1]["name"]
            api_version = f"{group}/{version_name}"
            body = {"apiVersion": api_version, "kind": spec["names"]["kind"], "metadata": {"name": "reach"}, "spec": {}}
            yield f"/apis/{api_version}/{place}{plural}", body
