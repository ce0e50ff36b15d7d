"""The profiler server and the profiles of a process reach its run and the captures of it, through all real ends."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from cluster.certificates import make_certificates
from cluster.ports import free_port
from mldiagnostics.control_plane.endpoint import PLANE_URL, endpoint
from mldiagnostics.control_plane.report import RunSnapshot
from mldiagnostics.control_plane.reporter import Reporter
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.records import Record
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_api.runs.names import run_name
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.control_planes import CLUSTER, Running, make_account
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S, Namespace, address, operating, verdict
from support.servers.profiler_servers import FakeProfiler, unknown_method

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
START_NS = 1_790_000_000_000_000_000


async def status_of(cluster: ApiClient, path: str, holds: Callable[[Object], Any]) -> Object:
    """Wait until the status of a run meets the condition; return it."""
    status: Object = {}
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not status or not holds(status):
                await asyncio.sleep(0.1)
                status = next((run.get("status", {}) for run in await cluster.items(path, dict)), {})
    except TimeoutError:
        raise AssertionError(f"the run stays {status}") from None
    return status


async def test_the_port_that_a_process_reports_is_captured_and_its_profiles_are_those_of_the_run(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    for resource in (CONNECTIONS, RUNS):
        await install(cluster, resource)
    await make_account(cluster, namespace)
    files = make_certificates(tmp_path / "pki", hosts=["127.0.0.1"])
    for made, name in ((files.certificate("apiserver"), "tls.crt"), (files.key("apiserver"), "tls.key")):
        shutil.copy(made, tmp_path / "pki" / name)
    config = OperatorConfig(
        cluster_name=CLUSTER,
        control_plane=True,
        control_plane_port=free_port(),
        control_plane_folder=tmp_path / "pki",
        pod_namespace=namespace,
        volume_root=tmp_path,
        policy=Policy(default_storage=Location.parse("volume:///runs")),
        watch_namespaces=(namespace,),
    )
    exchange, telemetry = RunExchange(), OperatorMetrics()
    storage = Storage(config.volume_root)
    controller = RunController(cluster, config, telemetry, holder="operator/uid/1", exchange=exchange, storage=storage)
    running = asyncio.create_task(controller.run())
    reporter: Reporter | None = None
    try:
        with address() as ip:
            async with (
                operating(cluster, namespace, tmp_path / "captures", exchange=exchange),
                FakeProfiler().serving(ip) as profiler,
            ):
                profiler.snapshot = unknown_method  # an older server, which is captured only if its kind is known
                pods = Running(cluster, namespace, None, None, telemetry, None, "")  # type: ignore[arg-type] - pods only
                job = await pods.job()
                label = {"metadata": {"labels": {OPT_IN_LABEL: "true"}}, "spec": {"suspend": False}}
                await cluster.patch(path_to("batch", "v1", "jobs", namespace=namespace, name="trainer"), label)
                labels = {"batch.kubernetes.io/job-name": "trainer", "job-name": "trainer"}
                labels["batch.kubernetes.io/controller-uid"] = job["metadata"]["uid"]
                client = await pods.reporter(owner=job, ip=ip, labels=labels)
                (tmp_path / "token").write_text(client.token)
                given = endpoint(
                    f"https://127.0.0.1:{config.control_plane_port}",
                    PLANE_URL,
                    token_file=str(tmp_path / "token"),
                    ca_file=str(files.ca),
                )
                origin = Origin(client.run, "job", "/storage", "0a0a0a0a", "trainer-0")
                reporter = Reporter(given, origin, host={}, leads=True)
                server = {"state": "listening", "port": profiler.port, "server": "tensorflow", "version": "2.20"}
                profile = {"state": "stored", "start_ns": START_NS, "stop_ns": START_NS + 10**9}
                records = [
                    Record("session", 1.0, "on-demand", payload=server),
                    Record("session", 2.0, "step-100", payload=profile),
                ]
                reporter.sink.make(origin).write(records)
                reporter.start(lambda: RunSnapshot("Active"))
                path = path_to(*RUNS.gvr, namespace=namespace)
                status = await status_of(cluster, path, lambda status: status.get("profileSessions"))
                [session] = status["profileSessions"]
                assert (session["id"], session["directory"]) == ("step-100", origin.directory)
                assert {"type": "Profilable", "status": "True"}.items() <= next(
                    each for each in status["conditions"] if each["type"] == "Profilable"
                ).items()
                ml = Namespace(cluster, namespace, ip)
                target = {"runRef": {"name": run_name("trainer", client.run)}}
                await ml.capture(target=target, durationMilliseconds=10, startLeadMilliseconds=0)
                captured = await ml.finished()
                assert verdict(captured) == ("Succeeded", "Succeeded"), captured
                assert len(profiler.requests) == 1
                status = await status_of(cluster, path, lambda status: len(status["profileSessions"]) == 2)
                assert [each.get("capture", "") for each in status["profileSessions"]] == ["", "capture"]
                assert await asyncio.to_thread(reporter.finish, DEADLINE_S)
                reporter = None
    finally:
        if reporter is not None:
            await asyncio.to_thread(reporter.finish, 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
