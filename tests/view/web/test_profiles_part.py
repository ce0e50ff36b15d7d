"""The actions on the profiles of a run in a browser: a capture by a real operator, and the real XProf."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import yaml
from mldiagnostics.store import open_store
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import expect
from support.cluster.definitions import connections
from support.cluster.grants import grant
from support.cluster.operating import Namespace, address, operating
from support.cluster.view_deployments import run_namespace
from support.programs.command_line import CommandLine
from support.programs.pages import visit
from support.run_files import put_run
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from playwright.async_api import Page
    from support.programs.pages import CheckedPages

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUN = "4f6c" + 60 * "0"
MLDIAG = (sys.executable, "-P", "-m", "mldiagnostics_cli")


@asynccontextmanager
async def training(api_server: ApiServer) -> AsyncIterator[Namespace]:
    """A namespace for a run."""
    async with run_namespace(api_server) as (admin, name):
        with address() as ip:
            yield Namespace(admin, name, ip)


async def make_hosts(ml: Namespace, port: int, count: int) -> None:
    """Make the Job of the run and its pods, which run."""
    jobs = path_to("batch", "v1", "jobs", namespace=ml.name)
    template = {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}
    spec = {"template": template, "completions": count, "parallelism": count, "completionMode": "Indexed"}
    job = await ml.cluster.create(jobs, {"metadata": {"name": "trainer"}, "spec": spec})
    uid = job["metadata"]["uid"]
    for index in range(count):
        labels = {
            RUN_LABEL: run_label(RUN),
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": "trainer",
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        await ml.pod(f"trainer-{index}", port, labels=labels, owner=job)
    runs = path_to(*RUNS.gvr, namespace=ml.name)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": uid}
    body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": "trainer"}}
    status = {"status": {"runId": RUN, "phase": "Active"}}
    await ml.put(runs, {**body, "spec": {"runId": RUN, "workloadRef": reference}, **status})


@pytest.mark.apiserver
async def test_chosen_hosts_are_captured_and_a_capture_is_cancelled(
    api_server: ApiServer, pages: CheckedPages, tmp_path: Path
) -> None:
    async with (
        training(api_server) as ml,
        operating(ml.cluster, ml.name, tmp_path),
        FakeProfiler().serving(ml.ip) as server,
    ):
        await make_hosts(ml, server.port, 2)
        place = ClusterOptions(kubeconfig=str(api_server.kubeconfig), namespace=ml.name)
        async with serving(Settings(cluster=place, port=0)) as url:
            page = await pages.open(f"{url}runs/cluster/{ml.name}:trainer?part=profiles")
            hosts = page.get_by_role("group", name="Hosts").get_by_role("checkbox")
            await expect(hosts).to_have_count(2)
            await expect(page.locator(".pick-hosts")).to_contain_text("rank 1 · trainer-1 · node-1")
            await pages.check_access(page)
            start = page.get_by_role("button", name="Capture", exact=True)
            for host in await hosts.all():
                await host.uncheck()
            await expect(start).to_be_disabled()
            await hosts.nth(1).check()
            await page.get_by_label("Duration in seconds").fill("0.2")
            await page.locator("summary", has_text="Command").click()
            await expect(page.locator(".command")).to_contain_text(
                f"mldiag capture job/trainer -n {ml.name} --ranks 1 --duration 0.2s --open"
            )
            await start.click()
            progress = page.get_by_role("status").filter(has_text="trainer-")
            await expect(progress).to_contain_text("Succeeded · 1 of 1 host captured")
            [made] = [each for each in await ml.cluster.items(connections(ml.name), dict) if "trainer" in str(each)]
            trigger = made["spec"]["triggerCapture"]
            assert trigger["target"] == {"runRef": {"name": "trainer"}, "ranks": "1"}
            assert trigger["durationMilliseconds"] == 200
            await pages.check_access(page)
            await visit(page, page.url)
            await expect(progress).to_contain_text("Succeeded")
            await page.get_by_role("link", name=f"Session {made['status']['sessionId']}").click()
            await expect(page).to_have_url(re.compile(f"session={made['status']['sessionId']}$"))
            await expect(progress).to_be_hidden()

            server.began.clear()
            await page.get_by_label("Duration in seconds").fill("50")
            await start.click()
            await asyncio.wait_for(server.began.wait(), 60)
            await page.get_by_role("button", name="Cancel").click()
            await expect(progress).to_contain_text("Cancelled")
            await expect(page.get_by_role("link", name="Session trainer-")).to_be_visible()  # recorded traces are kept
            await page.get_by_role("button", name="Close").click()
            await expect(progress).to_be_hidden()
            await pages.check()


@pytest.mark.apiserver
async def test_a_user_without_the_right_sees_the_reason_and_the_command(
    api_server: ApiServer, pages: CheckedPages, tmp_path: Path
) -> None:
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "joe"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    async with training(api_server) as ml:
        read = ["get", "list", "watch"]
        runs = {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": read}
        await grant(ml.cluster, ml.name, "joe", runs, {"apiGroups": [""], "resources": ["pods"], "verbs": read})
        await make_hosts(ml, 9999, 1)
        place = ClusterOptions(kubeconfig=str(tmp_path / "kubeconfig"), namespace=ml.name)
        async with serving(Settings(cluster=place, port=0)) as url:
            page = await pages.open(f"{url}runs/cluster/{ml.name}:trainer?part=profiles", width=400, scheme="dark")
            await page.get_by_role("button", name="Capture", exact=True).click()
            await expect(page.get_by_role("alert")).to_contain_text("cannot create resource")
            await expect(page.get_by_role("alert")).to_contain_text("ask the administrator for this right")
            assert await ml.cluster.items(connections(ml.name), dict) == []
            pages.expect_errors()  # the console has the response 403
            await pages.check()
        async with serving(Settings(cluster=place, port=0, names=("view.example.com",))) as url:
            page = await pages.open(f"{url}runs/cluster/{ml.name}:trainer?part=profiles")
            await expect(page.locator(".capture")).to_contain_text("everybody who reaches it would capture")
            await expect(page.locator(".command")).to_contain_text(
                f"mldiag capture job/trainer -n {ml.name} --duration 2s"
            )
            await expect(page.get_by_role("button", name="Capture", exact=True)).to_be_hidden()
            await pages.check()


@pytest.mark.peers
async def test_a_session_is_opened_in_xprof(
    pages: CheckedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mldiag = CommandLine(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "state")})
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first")
    store.put("first/plugins/profile/slow/host-0.xplane.pb", b"")
    async with serving(Settings(roots=(str(tmp_path / "runs"),), port=0, mldiag=MLDIAG)) as url:
        page = await pages.open(f"{url}runs/runs/first?part=profiles&session=slow")
        await page.get_by_role("button", name="Open in XProf").click()
        await expect(page.locator(".opener")).to_contain_text("Starting XProf …")
        await pages.check_access(page)
        link = page.get_by_role("link", name="XProf shows it")
        await expect(link).to_have_attribute(
            "href", re.compile(r"^http://127\.0\.0\.1:\d+/data/plugin/profile/.*run=slow")
        )
        [server] = mldiag.document("xprof", "list", "--on", "local")
        assert (await link.get_attribute("href") or "").startswith(server["url"])
        await expect_opened(page, pages, server["url"])
        await pages.check()
    assert mldiag.document("xprof", "list", "--on", "local") == []


async def expect_opened(page: Page, pages: CheckedPages, url: str) -> None:
    """Wait until the page has opened a URL in a tab of its own, which the test keeps from loading."""
    context = page.context
    async with asyncio.timeout(60):
        while len(context.pages) < 2:  # noqa: ASYNC110 - polls the browser
            await asyncio.sleep(0.05)
    await context.pages[1].close()
    assert any(f"request to another host: {url}" in each for each in pages.expect_errors())
