"""Pods of the operator with volumes, and an API server that runs programs in them as the kubelet does."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.client.pod_exec import PROTOCOL
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def pod(name: str, container: str = "operator", phase: str = "Running") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ops"}
    return {"metadata": metadata, "spec": {"containers": [{"name": container}]}, "status": {"phase": phase}}


class Kubelet:
    """Pods whose volumes are directories.

    While they are `hidden`, nobody may list them.
    `forbidden` refuses to run programs; a pod that is `unready` runs none, and the connection to a `broken` one breaks
    before the program ends. `leader` is the pod that holds the Lease.
    """

    def __init__(self, volumes: Path) -> None:
        self.volumes, self.forbidden, self.ran = volumes, False, list[str]()
        self.hidden = False
        self.unready, self.broken, self.leader = set[str](), set[str](), ""
        self.pods = [pod("old", phase="Failed"), pod("first"), pod("second"), pod("webhook", container="webhook")]

    async def list(self, _: web.Request) -> web.Response:
        if self.hidden:
            return web.json_response({"message": "no pods for jane"}, status=403)
        return web.json_response({"metadata": {}, "items": self.pods})

    async def list_policies(self, _: web.Request) -> web.Response:
        return web.json_response({"metadata": {}, "items": []})

    async def list_leases(self, _: web.Request) -> web.Response:
        if not self.leader:
            return web.json_response({"message": "no leases for jane"}, status=403)
        lease = {"metadata": {"name": "operator"}, "spec": {"holderIdentity": f"{self.leader}/uid/1-process"}}
        return web.json_response({"metadata": {}, "items": [lease]})

    async def exec(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["pod"]
        self.ran.append(name)
        if self.forbidden:
            return web.json_response({"message": "no pods/exec for jane"}, status=403)
        if name in self.unready:
            return web.json_response({"message": "container not found"}, status=500)
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        process = await asyncio.create_subprocess_exec(
            "python3",
            *request.query.getall("command")[1:],
            env={**of_programs(), "MLDIAG_VOLUME_ROOT": str(self.volumes / name)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
        for start in range(0, len(out), 5000):
            await socket.send_bytes(b"\x01" + out[start : start + 5000])
        if name in self.broken:
            await socket.close()
            return socket
        await socket.send_bytes(b"\x02" + errors)
        causes = [{"reason": "ExitCode", "message": str(process.returncode)}]
        failure = {"status": "Failure", "message": "failed", "details": {"causes": causes}}
        status = failure if process.returncode else {"status": "Success"}
        await socket.send_bytes(b"\x03" + json.dumps(status).encode())
        await socket.close()
        return socket


@asynccontextmanager
async def serving(kubelet: Kubelet) -> AsyncIterator[ApiClient]:
    """Serve the pods while the block runs; yield a client."""
    app = web.Application()
    for scope in ("", "/namespaces/{namespace}"):
        app.router.add_get(f"/api/v1{scope}/pods", kubelet.list)
    app.router.add_get("/api/v1/configmaps", kubelet.list_policies)
    app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/ops/leases", kubelet.list_leases)
    app.router.add_get("/api/v1/namespaces/ops/pods/{pod}/exec", kubelet.exec)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = ApiClient(Credentials(f"http://127.0.0.1:{runner.addresses[0][1]}", fixed("")))
    try:
        yield client
    finally:
        await client.aclose()
        await runner.cleanup()
