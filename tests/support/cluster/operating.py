"""An operator over a namespace of a real API server, and pods in it whose address leads to servers on this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.ranges import Ranges
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.process.clock import Clock, utc_now
from mldiagnostics_operator.captures.controller import CaptureController
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.controller import WatchedResource
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from mldiagnostics_operator.watching import watch
from support.cluster import builders
from support.cluster.definitions import connections
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_operator.diagnoses.job import JobTemplate
    from mldiagnostics_operator.run_exchange import RunExchange

Object = dict[str, Any]

DEADLINE_S = 60
ANY_PORT = Policy(
    default_storage=Location.parse("volume:///"),
    allowed_storage={"*": tuple(map(Location.prefix, ("volume:///", "/profiles", "gs://hangs")))},
    allowed_ports=Ranges.parse("1-65535"),
    strict_tenancy=True,
)


@contextmanager
def address() -> Iterator[str]:
    """Yield an address of this machine that can be a pod's: pods have no loopback addresses.

    Root adds one from the range of RFC 2544, which no network routes, while the block runs. Others take the machine's.
    """
    if os.geteuid() != 0:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect(("198.18.0.1", 9))  # sends nothing, but chooses the source address
            yield str(route.getsockname()[0])
        return
    ip = f"198.18.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    subprocess.run(["ip", "address", "add", f"{ip}/32", "dev", "lo"], check=True, capture_output=True)
    try:
        yield ip
    finally:
        subprocess.run(["ip", "address", "del", f"{ip}/32", "dev", "lo"], check=True, capture_output=True)


@contextmanager
def addresses(count: int) -> Iterator[list[str]]:
    """Yield up to 500 addresses of this machine that pods can have; needs root."""
    second = 2 * secrets.randbelow(128)
    network = [f"198.19.{second}.1/23", "dev", "lo"]
    subprocess.run(["ip", "address", "add", *network], check=True, capture_output=True)
    try:
        yield [f"198.19.{second + number // 250}.{2 + number % 250}" for number in range(count)]
    finally:
        subprocess.run(["ip", "address", "del", *network], check=True, capture_output=True)


@dataclass
class Namespace:
    """A namespace on the API server, with the verbs that tests of captures need."""

    cluster: ApiClient
    name: str
    ip: str
    uids: dict[str, str] = field(default_factory=dict)

    async def pod(self, name: str, *ports: int, **changes: Any) -> Object:
        """Make a pod whose profilers listen on the ports, as if a kubelet ran it."""
        if ports:
            changes["annotations"] = {"diagon.gke.io/profiler-ports": ",".join(map(str, ports))}
        body = builders.pod(name, namespace=self.name, **{"ip": self.ip, **changes})
        return await self.put(path_to("", "v1", "pods", namespace=self.name), body)

    async def remove_pod(self, name: str) -> None:
        """Delete a pod at once, as a kubelet does after its containers have ended."""
        path = path_to("", "v1", "pods", namespace=self.name, name=name)
        await self.cluster.request("DELETE", path, body={"gracePeriodSeconds": 0})

    async def put(self, path: str, body: Object) -> Object:
        """Make an object with its status."""
        made = await self.cluster.create(path, body)  # the server replaces uid and time of creation
        name = made["metadata"]["name"]
        if "status" not in body:
            return made
        return await self.cluster.patch(f"{path}/{name}/status", {"status": body["status"]})

    async def capture(self, name: str = "capture", **trigger: Any) -> Object:
        """Apply a capture; `cancel` and `ttlSecondsAfterFinished` are of the spec, all else of `triggerCapture`."""
        body = builders.connection(name, namespace=self.name, **trigger)
        return await self.put(connections(self.name), body)

    async def change(self, name: str, **spec: Any) -> None:
        """Patch fields of a capture's spec."""
        await self.cluster.patch(f"{connections(self.name)}/{name}", {"spec": spec})

    async def delete(self, name: str) -> None:
        """Delete a capture."""
        path = f"{connections(self.name)}/{name}"
        await self.cluster.delete(path, uid=(await self.cluster.get(path))["metadata"]["uid"])

    async def status(self, name: str = "capture") -> Object:
        """Read a capture's status; empty while it has none."""
        body = await self.cluster.get(f"{connections(self.name)}/{name}")
        status: Object = body.get("status", {})
        return status

    async def until(self, condition: Callable[[Object], Any], name: str = "capture") -> Object:
        """Wait until the capture's status meets the condition; return the status."""
        status: Object = {}
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition(status := await self.status(name)):  # noqa: ASYNC110 - polls the API server
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{name} stays at {status}") from None
        return status

    async def finished(self, name: str = "capture") -> Object:
        """Wait until the capture is complete; return the status."""
        return await self.until(complete, name)

    async def is_gone(self, name: str) -> None:
        """Wait until the capture does not exist any more."""
        async with asyncio.timeout(DEADLINE_S):
            with suppress(NotFound):
                while True:
                    await self.status(name)
                    await asyncio.sleep(0.05)

    async def events(self, last: str, name: str = "capture") -> list[str]:
        """List the reasons of a capture's events in their order, once the last one is there."""
        path = path_to("", "v1", "events", namespace=self.name)
        reasons: list[str] = []
        async with asyncio.timeout(DEADLINE_S):
            while last not in reasons:
                listed: list[Object] = await self.cluster.items(path, dict, fields=f"involvedObject.name={name}")
                listed.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
                reasons = [event["reason"] for event in listed]
        return reasons


def complete(status: Object) -> bool:
    """Return whether a capture is complete."""
    return condition(status, "Complete").get("status") == "True"


def condition(status: Object, kind: str) -> Object:
    """Return a condition of a status, or empty."""
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), {})


def verdict(status: Object) -> tuple[str, str]:
    """Return phase and reason of a finished capture."""
    return status["phase"], condition(status, "Complete")["reason"]


@dataclass
class Operating:
    """A running operator, and every version of every object in its watch."""

    captures: CaptureController
    versions: dict[str, set[str]] = field(default_factory=dict)
    streaming: asyncio.Event = field(default_factory=asyncio.Event)

    def observe(self, body: Any, event: Any) -> None:
        if event == "gone":  # a list does not show deletions
            self.streaming.set()
        self.versions.setdefault(body["metadata"]["name"], set()).add(body["metadata"]["resourceVersion"])
        self.captures.observe(body, event)


@asynccontextmanager
async def operating(
    cluster: ApiClient,
    namespace: str,
    volume: Path,
    *,
    policy: Policy = ANY_PORT,
    me: str = "operator/uid/1-test",
    clock: Clock = utc_now,
    exchange: RunExchange | None = None,
    diagnosis_job: JobTemplate | None = None,
) -> AsyncIterator[Operating]:
    """Run the operator's core over one namespace, fed by kopf's watch as in the product."""
    config = OperatorConfig(
        policy=policy,
        volume_root=volume,
        watch_namespaces=(namespace,),
        cluster_name="test-cluster",
        pod_namespace=namespace,
        diagnosis_job=diagnosis_job,
    )
    operator = Operating(
        CaptureController(
            cluster, config, OperatorMetrics(), holder=me, exchange=exchange, storage=Storage(volume), clock=clock
        )
    )
    watched = WatchedResource(
        resource=operator.captures.resource,
        field_selector=operator.captures.field_selector,
        observe=operator.observe,
    )
    running = [
        asyncio.create_task(operator.captures.run()),
        asyncio.create_task(watch([watched], cluster, [namespace], started=lambda: None)),
    ]
    try:
        # A watch that is cancelled while it connects leaks its socket: CPython forgets it before the TLS handshake.
        await cluster.create(
            connections(namespace), builders.connection("warm-up", namespace=namespace, podName="none")
        )
        await asyncio.wait_for(operator.streaming.wait(), DEADLINE_S)
        yield operator
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=DEADLINE_S)
    for task in running:
        assert task.cancelled(), task


class Process:
    """The operator as a process, in place of a pod."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def kill(self) -> None:
        """Kill the process without a chance to clean up."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def operator_process(
    kubeconfig: Path,
    namespace: str,
    volume: Path,
    *,
    pod: str = "operator-0",
    uid: str = "uid-0",
    log: Path,
    **settings: str,
) -> AsyncIterator[Process]:
    """Run `python -m mldiagnostics_operator` over one namespace; killed at the end of the block, if it still runs."""
    policy = volume.parent / "policy.json"
    policy.write_text('{"allowedPorts": "1-65535", "allowedStorage": {"*": ["volume:///"]}}')
    environ = {
        **of_programs(),
        "KUBECONFIG": str(kubeconfig),
        "POD_NAME": pod,
        "POD_UID": uid,
        "POD_NAMESPACE": namespace,
        "MLDIAG_CLUSTER_NAME": "test-cluster",
        "MLDIAG_POLICY_FILE": str(policy),
        "MLDIAG_VOLUME_ROOT": str(volume),
        "MLDIAG_WATCH_NAMESPACES": namespace,
        "MLDIAG_HTTP_PORT": "0",
        "MLDIAG_LEASE_DURATION_SECONDS": "8",
        "MLDIAG_LEASE_RENEW_DEADLINE_SECONDS": "6",
        "MLDIAG_LEASE_RETRY_SECONDS": "0.5",
        **settings,
    }
    with log.open("ab") as output:
        command = (sys.executable, "-m", "mldiagnostics_operator")
        running = Process(await asyncio.create_subprocess_exec(*command, env=environ, stdout=output, stderr=output))
    try:
        yield running
    finally:
        await running.kill()
