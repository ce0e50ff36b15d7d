"""The automatic captures of a run on its page, from schedules of a real API server."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import expect
from support.cluster.definitions import install
from support.cluster.view_deployments import make_run, run_namespace, start_run

if TYPE_CHECKING:
    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.programs.pages import CheckedPages

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver]

RUN = "4f6c" + 60 * "0"
NEXT = "2026-11-26T18:00:00Z"
REASON = "StepTimeRise: the step time is 31% above its usual value"


async def make_schedule(admin: ApiClient, namespace: str) -> None:
    """Make a schedule with a record of a day, as an operator writes it."""
    body = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": {"name": "often"}}
    path = path_to(*SCHEDULES.gvr, namespace=namespace)
    await admin.create(path, {**body, "spec": {"schedule": {"every": "6h"}, "triggers": [{"type": "StepTimeRise"}]}})
    made: dict[str, Any] = {"run": "trainer", "state": "Finished", "bytes": 1000}
    status = {
        "schedule": "every 6h, StepTimeRise",
        "nextCaptureTime": NEXT,
        "captures": [
            made | {"name": "often-1", "time": "2026-11-26T12:00:00Z", "slotTime": "2026-11-26T12:00:00Z"},
            made | {"name": "often-2", "time": "2026-11-26T13:00:00Z", "trigger": "StepTimeRise", "message": REASON},
        ],
        "refusals": [
            {
                "reason": "CapturesPerRun",
                "count": 3,
                "lastTime": "2026-11-26T14:00:00Z",
                "run": "trainer",
                "message": "used",
            }
        ],
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Scheduled",
                "message": "the next slot is at 18:00",
                "lastTransitionTime": "2026-11-26T12:00:00Z",
            }
        ],
    }
    await admin.patch(f"{path}/often/status", {"status": status})


async def test_the_page_shows_the_next_capture_the_reasons_and_what_was_refused(
    api_server: ApiServer, pages: CheckedPages
) -> None:
    async with run_namespace(api_server) as (admin, namespace):
        await install(admin, SCHEDULES)
        await make_run(admin, namespace, "trainer", RUN)
        await start_run(admin, namespace, "trainer")
        await make_schedule(admin, namespace)
        place = ClusterOptions(kubeconfig=str(api_server.kubeconfig), namespace=namespace)
        async with serving(Settings(cluster=place, port=0)) as url:
            for width in (400, 1000):
                page = await pages.open(f"{url}runs/cluster/{namespace}:trainer?part=profiles", width=width)
                await expect(page.get_by_role("heading", name="Automatic captures")).to_be_visible()
                shown = page.locator(".detail", has_text="often")
                next_time = f"{datetime.fromisoformat(NEXT).astimezone():%Y-%m-%d %H:%M:%S}"
                await expect(shown).to_contain_text(f"every 6h, StepTimeRise: next capture {next_time}")
                rows = shown.get_by_role("row")
                await expect(rows).to_have_count(3)
                await expect(rows.nth(1)).to_contain_text(REASON)  # the newest one first
                await expect(rows.nth(2)).to_contain_text("slot")
                await expect(shown).to_contain_text("Refused 3 by CapturesPerRun")
                await pages.check_access(page)
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await pages.check()
