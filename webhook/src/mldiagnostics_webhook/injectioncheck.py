"""`helm test`: ask the API server for a pod, of which it makes nothing but a dry run, and look at what it was told."""

import asyncio
import os
import sys
import uuid
from contextlib import aclosing
from typing import Any, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION
from mldiagnostics_kube.apiserver import ClusterError, Unavailable, path_to
from mldiagnostics_kube.client import ApiClient

DEADLINE_S: Final = 60.0
"""Enough for a certificate to be made and for the API server to learn of it."""
PAUSE_S: Final = 1.0


class RunNotInjected(Exception):
    """A pod that asked for it was told of no run."""


async def check(cluster: ApiClient, namespace: str, deadline_s: float = DEADLINE_S) -> tuple[str, tuple[str, ...]]:
    """Create a labelled pod dryly until it comes back with a run: its id, and the variables of its container.

    Raises NotTold with the webhook's words, if it said any, and ClusterError if the API server refuses the pod.
    """
    path = path_to("", "v1", "pods", namespace=namespace)
    last = "the webhook was not asked, or did not answer: look at its log and at the labels of the namespace"
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    pod = await cluster.request("POST", path, query=[("dryRun", "All")], body=_pod())
                except Unavailable as fault:
                    last = str(fault)
                else:
                    annotations = pod["metadata"].get("annotations", {})
                    if run := annotations.get(RUN_ANNOTATION):
                        (container,) = pod["spec"]["containers"]
                        return run, tuple(entry["name"] for entry in container["env"])
                    last = annotations.get(INJECTION_ANNOTATION, last)
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        raise RunNotInjected(
            f"a labelled pod in {namespace} was told of no run within {deadline_s:g} s: {last}"
        ) from None


def _pod() -> dict[str, Any]:
    """Compose a pod that the strictest Pod Security takes; its name is part of its run's id, so it needs one."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "none", "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"mldiagnostics-injection-check-{uuid.uuid4().hex}", "labels": {OPT_IN_LABEL: "true"}},
        "spec": {
            "containers": [container],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


async def _report(namespace: str) -> str:
    cluster = await ApiClient.connect(os.environ)
    async with aclosing(cluster):
        run, variables = await check(cluster, namespace)
    return f"A labelled pod in {namespace} was told of its run {run}: {', '.join(variables)}.\n"


def main() -> int:
    """Check injection in the namespace that is named as the argument, and say how it went; 0 if it works."""
    try:
        sys.stdout.write(asyncio.run(_report(sys.argv[1])))
    except (ClusterError, ConfigurationError, RunNotInjected) as fault:
        sys.stderr.write(f"Injection does not work: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
