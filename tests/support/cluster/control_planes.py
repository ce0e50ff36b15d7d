"""A control plane over a real API server, with pods and real projected tokens that report to it over TLS."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.certificates import make_certificates
from mldiagnostics.identity import run_id
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.identity import lookups
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_kube.client.api_client import ApiClient

Object = dict[str, Any]
CLUSTER = "test-cluster"
DEADLINE_S = 60
ACCOUNT = "trainer"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: Any
    headers: Any = field(repr=False)


@dataclass
class Reporter:
    """A client that reports one run with one token."""

    session: aiohttp.ClientSession
    url: str
    token: str
    run: str
    incarnation: str = "00000001"
    sequence: int = 0

    async def report(self, *, run: str | None = None, token: str | None = None, **changes: Any) -> Answer:
        """Send the next report."""
        self.sequence += 1
        body = {"v": 1, "incarnation": self.incarnation, "sequence": self.sequence, "sent": utc_now().timestamp()}
        content = gzip.compress(json.dumps({**body, "rank": 0, "run": {"name": "r"}, **changes}).encode())
        return await self.post(content, run=run, token=token)

    async def post(
        self, content: bytes, *, run: str | None = None, token: str | None = None, encoding: str = "gzip"
    ) -> Answer:
        """Send a body of any content."""
        headers = {
            "Authorization": f"Bearer {token if isinstance(token, str) else self.token}",
            "Content-Type": "application/json",
            "Content-Encoding": encoding,
        }
        url = f"{self.url}/v1/runs/{run or self.run}/reports"
        async with self.session.post(url, data=BytesIO(content), headers=headers) as answer:
            return Answer(answer.status, await answer.json(), answer.headers)

    async def persisted(self, **changes: Any) -> Object:
        """Report until the report of now is persisted; return the answer."""
        sequence = self.sequence + 1
        async with asyncio.timeout(DEADLINE_S):
            while True:
                answer = await self.report(**changes)
                assert answer.status == 200, answer
                if answer.body["persistedSequence"] >= sequence:
                    return dict(answer.body)
                await asyncio.sleep(0.2)  # as a client does, which has a rate


@dataclass
class Running:
    """A control plane that serves."""

    cluster: ApiClient
    namespace: str
    plane: ControlPlane
    table: ReportTable
    telemetry: OperatorMetrics
    session: aiohttp.ClientSession
    url: str
    peer_url: str = ""

    async def pod(self, name: str = "trainer-0", *, owner: Object | None = None, **changes: Any) -> Object:
        """Make a pod."""
        body = builders.pod(name, namespace=self.namespace, owner=owner, **changes)
        path = path_to("", "v1", "pods", namespace=self.namespace)
        body["spec"]["serviceAccountName"] = ACCOUNT
        await self.cluster.create(path, body)
        return await self.cluster.patch(f"{path}/{name}/status", {"status": body["status"]})

    async def job(self, name: str = "trainer") -> Object:
        """Make a Job without pods."""
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        body = {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}}
        made = await self.cluster.create(path_to("batch", "v1", "jobs", namespace=self.namespace), body)
        return {**made, "apiVersion": "batch/v1", "kind": "Job"}

    async def remove(self, path: str) -> None:
        """Delete an object at once, as if the controllers of its finalizers had acted."""
        await self.cluster.request("DELETE", path, body={"gracePeriodSeconds": 0})
        with suppress(NotFound):
            await self.cluster.patch(path, {"metadata": {"finalizers": None}})

    async def token(self, pod: Object | None = None, *, audience: str = "mldiagnostics", account: str = ACCOUNT) -> str:
        """Return a projected token as a kubelet gets it, or one without a pod."""
        spec: Object = {"audiences": [audience], "expirationSeconds": 600}
        if pod is not None:
            meta = pod["metadata"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        path = path_to("", "v1", "serviceaccounts", namespace=self.namespace, name=account, sub="token")
        made = await self.cluster.create(path, {"spec": spec})
        return str(made["status"]["token"])

    def run_of(self, owner: Object) -> str:
        """Return the run id of a workload."""
        metadata = owner["metadata"]
        created = datetime.fromisoformat(metadata["creationTimestamp"]).astimezone(UTC)
        return run_id(
            cluster=CLUSTER, namespace=self.namespace, kind=owner["kind"], name=metadata["name"], created=created
        )

    async def reporter(self, name: str = "trainer-0", *, owner: Object | None = None, **changes: Any) -> Reporter:
        """Return a client in a pod of a Job."""
        owner = owner or await self.job(f"job-{name}")
        pod = await self.pod(name, owner=owner, **changes)
        return Reporter(self.session, self.url, await self.token(pod), self.run_of(owner))

    def view(self, run: str) -> ReportedRun | None:
        """Return the run as it was reported."""
        return self.table.view(RunKey(self.namespace, run))

    async def until(self, run: str, condition: Callable[[ReportedRun], Any]) -> ReportedRun:
        """Wait until the run meets a condition."""
        async with asyncio.timeout(DEADLINE_S):
            while (view := self.view(run)) is None or not condition(view):  # noqa: ASYNC110 - polls the table
                await asyncio.sleep(0.02)
        return view

    def value(self, name: str, **labels: str) -> float:
        """Return the value of a metric."""
        return self.telemetry.registry.get_sample_value(f"mldiagnostics_control_plane_{name}", labels) or 0.0


@asynccontextmanager
async def serving(
    cluster: ApiClient, namespace: str, folder: Path, *, clock: Callable[[], float] = time.time, **settings: Any
) -> AsyncIterator[Running]:
    """Serve a control plane; its volume is in `folder`, and a busy API server has time for its answers."""
    files = make_certificates(folder / "pki", hosts=["127.0.0.1"])
    certificate = ServingCertificate(utc_now)
    certificate.load(files.certificate("apiserver").read_bytes(), files.key("apiserver").read_bytes())
    config = OperatorConfig(
        **{
            "cluster_name": CLUSTER,
            "control_plane_port": 0,
            "volume_root": folder / "volume",
            "policy": Policy(default_storage=Location.parse("volume:///runs")),
            "watch_namespaces": (namespace,),
            **settings,
        }
    )
    table, telemetry = ReportTable(), OperatorMetrics()
    plane = ControlPlane(
        cluster,
        config,
        telemetry,
        table,
        certificate,
        storage=Storage(config.volume_root),
        clock=clock,
        journal_interval_s=0.01,
        final_wait_s=DEADLINE_S,
        account_interval_s=0.01,
    )
    patch = pytest.MonkeyPatch()
    work = asyncio.create_task(plane.run())
    trust = ssl.create_default_context(cafile=files.ca)
    try:
        patch.setattr(lookups, "LOOKUP_S", DEADLINE_S)
        await asyncio.wait((work, plane.port), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        port, peer = await plane.port, await plane.peer_port
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            url = f"https://127.0.0.1:{port}"
            yield Running(cluster, namespace, plane, table, telemetry, session, url, f"http://127.0.0.1:{peer}")
    finally:
        work.cancel()
        patch.undo()
        await asyncio.gather(work, return_exceptions=True)


async def make_account(cluster: ApiClient, namespace: str, name: str = ACCOUNT) -> None:
    """Make a service account."""
    path = path_to("", "v1", "serviceaccounts", namespace=namespace)
    await cluster.create(path, {"metadata": {"name": name}})
