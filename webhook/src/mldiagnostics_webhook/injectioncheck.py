"""Check of `helm test`: a dry run of a labelled pod must come back with a run."""

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
"""Enough to create a certificate and for the API server to read it."""
PAUSE_S: Final = 1.0


class RunNotInjected(Exception):
    """A labelled pod was created without a run."""


async def check(cluster: ApiClient, namespace: str, deadline_s: float = DEADLINE_S) -> tuple[str, tuple[str, ...]]:
    """Create a labelled pod as a dry run until it has a run.

    Returns:
        The run id, and the names of the variables of the pod's container.

    Raises:
        RunNotInjected: no run was injected in time; the message has the webhook's reason, if there is one.
        ClusterError: the API server rejects the pod.
    """
    path = path_to("", "v1", "pods", namespace=namespace)
    reason = "the webhook was not called or did not answer; see its log and the labels of the namespace"
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    pod = await cluster.request("POST", path, query=[("dryRun", "All")], body=_pod())
                except Unavailable as error:
                    reason = str(error)
                else:
                    annotations = pod["metadata"].get("annotations", {})
                    if run := annotations.get(RUN_ANNOTATION):
                        (container,) = pod["spec"]["containers"]
                        return run, tuple(entry["name"] for entry in container["env"])
                    reason = annotations.get(INJECTION_ANNOTATION, reason)
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        raise RunNotInjected(
            f"namespace {namespace}: no run was injected into a labelled pod within {deadline_s:g} s: {reason}"
        ) from None


def _pod() -> dict[str, Any]:
    """Compose a pod for Pod Security `restricted`; its name is part of the run id."""
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
    return f"Injection works: a labelled pod in {namespace} gets the run {run} and {', '.join(variables)}.\n"


def main() -> int:
    """Check injection in the namespace `sys.argv[1]`; return 0 if it works."""
    try:
        sys.stdout.write(asyncio.run(_report(sys.argv[1])))
    except (ClusterError, ConfigurationError, RunNotInjected) as error:
        sys.stderr.write(f"Injection does not work: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
