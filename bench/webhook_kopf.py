"""The peer: a kopf admission handler over TLS that sets one label. `FOLDER` has the certificate; KUBECONFIG counts."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import kopf
from cluster.health import free_ports


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

    @kopf.on.mutate("", "v1", "pods", id="workload", registry=handlers)
    def label(patch: kopf.Patch, **_: Any) -> None:
        patch.metadata.labels["run"] = "0123456789abcdef"

    return handlers


async def serve(folder: Path) -> None:
    (port,) = free_ports(1)
    print(json.dumps({"port": port}), flush=True)
    await kopf.operator(registry=registry(folder, port), standalone=True, clusterwide=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
