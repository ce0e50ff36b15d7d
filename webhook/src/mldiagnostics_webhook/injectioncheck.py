"""Check of `helm test`: a dry run of a labelled pod must come back with a run."""

import asyncio
import os
import sys
import uuid
from contextlib import aclosing
from typing import Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.injection import trial_pod, trial_result
from mldiagnostics_api.injection.trial import NOT_CALLED
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, Unavailable, path_to

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
    reason = NOT_CALLED
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    body = trial_pod(f"mldiagnostics-injection-check-{uuid.uuid4().hex}")
                    pod = await cluster.request("POST", path, query=[("dryRun", "All")], body=body)
                except Unavailable as error:
                    reason = str(error)
                else:
                    run, reason = trial_result(pod)
                    if run:
                        (container,) = pod["spec"]["containers"]
                        return run, tuple(entry["name"] for entry in container["env"])
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        raise RunNotInjected(
            f"namespace {namespace}: no run was injected into a labelled pod within {deadline_s:g} s: {reason}"
        ) from None


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
