"""Webhook processes that a real API server calls."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
from cluster.certificates import make_certificates
from mldiagnostics_api.manifests.registration import webhooks
from mldiagnostics_api.names import OPT_IN_LABEL, RUN_ANNOTATION
from mldiagnostics_kube.client.apiserver import path_to
from prometheus_client.parser import text_string_to_metric_families
from support.programs.peak_memory import peak_bytes
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.namespaces import Stage

Object = dict[str, Any]

DEADLINE_S = 60.0
CLUSTER_NAME = "train-cluster"
CONFIGURATIONS = path_to("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")


@dataclass
class Process:
    """One replica; the ports are 0 until they appear in its log."""

    process: asyncio.subprocess.Process
    ca: bytes
    port: int = 0
    http_port: int = 0
    lines: list[Object] = field(default_factory=list)
    reading: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Read the log to the end."""
        assert self.process.stdout
        async for raw in self.process.stdout:
            line = json.loads(raw)
            self.lines.append(line)
            self.port = line.get("port", self.port)
            self.http_port = line.get("http_port", self.http_port)

    async def get(self, path: str) -> tuple[int, str]:
        """Send GET to the HTTP port; the status is 0 without an answer."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status, (await answer.text()).strip()
        except aiohttp.ClientError:
            return 0, ""

    async def is_ready(self, state: str = "serving", status: int = 200) -> None:
        """Wait until the readiness probe returns this state."""
        end = asyncio.get_running_loop().time() + DEADLINE_S
        while (now := await self.get("/readyz")) != (status, state):
            late = self.process.returncode is not None or asyncio.get_running_loop().time() > end
            assert not late, f"{now} instead of {state}: {[line['message'] for line in self.lines]}"
            await asyncio.sleep(0.02)

    async def reviews(self) -> dict[tuple[str, str], float]:
        """Return the number of reviews by result and reason."""
        _, text = await self.get("/metrics")
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        total = "mldiagnostics_webhook_reviews_total"
        return {(s.labels["result"], s.labels["reason"]): s.value for s in samples if s.name == total}

    def peak_bytes(self) -> int:
        """Return the most memory that the process has used."""
        return peak_bytes(self.process.pid)

    async def ends(self) -> int:
        """Wait until the process exits, and return the exit status."""
        status = await asyncio.wait_for(self.process.wait(), DEADLINE_S)
        assert self.reading
        await self.reading
        return status


@asynccontextmanager
async def webhook_process(kubeconfig: Path, folder: Path, **environ: str) -> AsyncIterator[Process]:
    """Run `python -m mldiagnostics_webhook` with a local certificate while the block runs."""
    files = make_certificates(folder / "pki", hosts=["127.0.0.1"])
    mounted = files.mount("apiserver", folder / "mounted")
    env = {
        **of_programs(),
        "KUBECONFIG": str(kubeconfig),
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "MLDIAG_CLUSTER_NAME": CLUSTER_NAME,
        "MLDIAG_PORT": "0",
        "MLDIAG_HTTP_PORT": "0",
        "MLDIAG_CERTIFICATE_FOLDER": str(mounted),
        **environ,
    }
    command = (sys.executable, "-m", "mldiagnostics_webhook")
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=asyncio.subprocess.PIPE)
    one = Process(process, files.ca.read_bytes())
    one.reading = asyncio.create_task(one.read())
    try:
        yield one
    finally:
        if process.returncode is None:
            process.kill()
        await one.ends()


def configuration(name: str, process: Process, namespace: str) -> Object:
    """Return a configuration for one namespace with the chart's entries and a longer timeout."""
    only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    entries = webhooks()
    for entry in entries:
        path = entry["clientConfig"]["service"]["path"]
        bundle = base64.b64encode(process.ca).decode()
        entry["clientConfig"] = {"url": f"https://127.0.0.1:{process.port}{path}", "caBundle": bundle}
        entry["namespaceSelector"]["matchExpressions"].append(only)
        entry["timeoutSeconds"] = 30
    return {"metadata": {"name": name}, "webhooks": entries}


@asynccontextmanager
async def registered(stage: Stage, process: Process) -> AsyncIterator[str]:
    """Register the process for the pods of a namespace; yield the configuration's name."""
    await process.is_ready()
    cluster, name = stage.ml.cluster, f"webhook-of-{stage.ml.name}"
    made = await cluster.create(CONFIGURATIONS, configuration(name, process, stage.ml.name))
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not injected(await dry_run(cluster, stage.ml.name, labels={OPT_IN_LABEL: "true"})):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        yield name
    finally:
        await cluster.delete(f"{CONFIGURATIONS}/{name}", uid=made["metadata"]["uid"])


async def dry_run(cluster: ApiClient, namespace: str, **parts: Any) -> Object:
    """Create a pod as a dry run and return it."""
    body = {"metadata": {"name": "probe", **parts}, "spec": {"containers": [{"name": "train", "image": "train:1"}]}}
    path = path_to("", "v1", "pods", namespace=namespace)
    return await cluster.request("POST", path, query=[("dryRun", "All")], body=body)


def injected(pod: Object) -> bool:
    """Return whether a pod has a run."""
    return RUN_ANNOTATION in pod["metadata"].get("annotations", {})
