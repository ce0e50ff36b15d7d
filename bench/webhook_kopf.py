"""Peer: a kopf admission handler over TLS that adds a patch of the same size, without lookups.

`FOLDER` has the certificate; the cluster is that of KUBECONFIG.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import kopf
from cluster.ports import free_ports

# As many variables, of the same length, as for a pod of a JobSet.
VARIABLES = [
    *({"name": f"MLDIAG_FIELD_{n}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} for n in range(7)),
    *({"name": f"MLDIAG_VALUE_{n}", "value": "x" * 100} for n in range(6)),
    {"name": "MLDIAG_WORKLOAD", "value": "x" * 400},
]


def registry(folder: Path, port: int) -> kopf.OperatorRegistry:
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1", port=port, certfile=str(folder / "tls.crt"), pkeyfile=str(folder / "tls.key")
        )

    @kopf.on.login(registry=handlers)
    def login(**given: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_kubeconfig(**given)

    @kopf.on.mutate("", "v1", "pods", id="mutate/workload", registry=handlers)
    def inject(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        containers = [{**container, "env": [*container.get("env", ()), *VARIABLES]} for container in spec["containers"]]
        patch.spec["containers"] = containers
        patch.metadata.labels["diagon.gke.io/run"] = "0" * 32
        patch.metadata.annotations["diagon.gke.io/run-id"] = "0" * 64
        patch.metadata.annotations["diagon.gke.io/injection"] = "Injected: run " + "0" * 100

    return handlers


async def serve(folder: Path) -> None:
    (port,) = free_ports(1)
    print(json.dumps({"port": port}), flush=True)
    await kopf.operator(registry=registry(folder, port), standalone=True, clusterwide=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
