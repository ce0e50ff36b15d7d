"""The page of a run of a cluster whose files cannot be read from here: it shows what the MLRun has, without errors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import expect
from support.cluster.view_deployments import make_run, run_namespace

if TYPE_CHECKING:
    from cluster.envtest import ApiServer
    from support.programs.pages import CheckedPages

pytestmark = [pytest.mark.apiserver, pytest.mark.asyncio(loop_scope="session")]

RUN, SERVING = "4f6c" + 60 * "0", "81aa" + 60 * "0"
AS_OF = datetime(2026, 11, 22, 10, 0, 30, tzinfo=UTC)
GOODPUT = {
    "ratio": 0.75,
    "elapsedSeconds": 400,
    "productiveSeconds": 300,
    "unproductiveSeconds": {"TRAINING_PREP": 60, "WASTED_PROGRESS_FROM_DISRUPTION": 40},
    "asOfTime": f"{AS_OF:%Y-%m-%dT%H:%M:%SZ}",
}
HEALTHY = {"runId": RUN, "phase": "Active", "reason": "Running", "message": "2 of 2 hosts report", "goodput": GOODPUT}
NO_FILES = "no pod of the operator runs in"
INDEPENDENT = {"runId": SERVING, "phase": "Active", "reason": "Running", "independent": True}


async def test_a_healthy_run_on_the_default_storage(api_server: ApiServer, pages: CheckedPages) -> None:
    async with run_namespace(api_server) as (admin, namespace):
        runs = path_to(*RUNS.gvr, namespace=namespace)
        await make_run(admin, namespace, "trainer", RUN, pods=2)
        await admin.patch(f"{runs}/trainer/status", {"status": HEALTHY})
        await make_run(admin, namespace, "server", SERVING)
        await admin.patch(f"{runs}/server/status", {"status": {"phase": "Failed", "message": "exit 1"}})
        place = ClusterOptions(kubeconfig=str(api_server.kubeconfig), namespace=namespace)
        async with serving(Settings(cluster=place, port=0)) as url:
            page = await pages.open(f"{url}runs/cluster/{namespace}:trainer")
            message = page.locator(".message")
            await expect(message).to_have_text("2 of 2 hosts report")
            colour = "each => getComputedStyle(each).color"
            assert await message.evaluate(colour) == await page.locator("body").evaluate(colour)
            await expect(page.locator(".part")).to_contain_text(NO_FILES)
            await page.get_by_role("link", name="Goodput").click()
            part = page.locator(".part")
            await expect(part).to_contain_text("75.0 % of 6 min 40 s went into steps that count")
            await expect(part).to_contain_text(f"From the MLRun, as of {AS_OF.astimezone():%Y-%m-%d %H:%M:%S}")
            await expect(part).to_contain_text(NO_FILES)
            await expect(part.get_by_role("row").filter(has_text="10.0 %")).to_contain_text("40")
            for name, text in (("Texts", NO_FILES), ("Hosts", "trainer-1")):
                await page.get_by_role("link", name=name).click()
                await expect(part).to_contain_text(text)

            failed = await pages.open(f"{url}runs/cluster/{namespace}:server?part=goodput")
            await expect(failed.locator(".message")).to_have_text("exit 1")
            assert await failed.locator(".message").evaluate(colour) != await failed.locator("body").evaluate(colour)
            await expect(failed.locator(".part")).to_contain_text(NO_FILES)

            await admin.patch(f"{runs}/server/status", {"status": {**INDEPENDENT, "message": None}})
            serves = await pages.open(f"{url}runs/cluster/{namespace}:server?part=goodput")
            await expect(serves.locator(".part")).to_contain_text("No rank leads the processes of this run")
            await serves.get_by_role("link", name="Hosts").click()
            await expect(serves.get_by_role("row").filter(has_text="server")).to_have_count(1)

            listed = await pages.open(url)
            await expect(listed.get_by_role("row").filter(has_text="trainer")).to_contain_text("75.0 %")
            pair = "&".join(f"run=cluster/{namespace}:{name}" for name in ("trainer", "server"))
            compared = await pages.open(f"{url}compare?{pair}")
            await expect(compared.get_by_role("main")).to_contain_text("75.0 %")
            await pages.check()
