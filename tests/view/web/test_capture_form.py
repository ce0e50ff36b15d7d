"""Captures from the page while the API server goes away: the page says so, and an order makes one capture."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import expect
from support.cluster.api_server_faults import faulty_api_server
from support.cluster.definitions import connections
from support.cluster.view_deployments import make_run, run_namespace, start_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from playwright.async_api import Page, Route
    from support.cluster.api_server_faults import Fault
    from support.programs.pages import CheckedPages

pytestmark = [pytest.mark.apiserver, pytest.mark.asyncio(loop_scope="session")]

RUN = "4f6c" + 60 * "0"
MAYBE = re.compile(r"may have been created; try again: the same order creates no second one\.$")
ORDERS = re.compile(r"/captures$")
WATCH_DISABLED = """
(button) => {
  window.wasDisabled = false;
  new MutationObserver(() => { window.wasDisabled ||= button.disabled; }).observe(button, { attributes: true });
}
"""


class RunNamespace:
    """A namespace with an active run on three hosts."""

    def __init__(self, admin: ApiClient, name: str) -> None:
        self._admin, self.name = admin, name

    async def captures(self) -> list[dict[str, Any]]:
        return await self._admin.items(connections(self.name), dict)


@asynccontextmanager
async def training(api_server: ApiServer) -> AsyncIterator[RunNamespace]:
    async with run_namespace(api_server) as (admin, namespace):
        await make_run(admin, namespace, "trainer", RUN, pods=3)
        await start_run(admin, namespace, "trainer")
        yield RunNamespace(admin, namespace)


@asynccontextmanager
async def opened(kubeconfig: Path, namespace: str, pages: CheckedPages) -> AsyncIterator[Page]:
    """The profiles of the run, with two of its three hosts chosen."""
    place = ClusterOptions(kubeconfig=str(kubeconfig), namespace=namespace)
    async with serving(Settings(cluster=place, port=0)) as url:
        page = await pages.open(f"{url}runs/cluster/{namespace}:trainer?part=profiles")
        await page.get_by_label("rank 1").uncheck()
        yield page
        await pages.check_access(page)
        await page.close()
    pages.expect_errors()  # the console has the responses 409 and 502


@pytest.mark.parametrize("fault", ["lose", "drop"])
async def test_an_order_whose_response_is_lost_is_sent_again(
    api_server: ApiServer, pages: CheckedPages, tmp_path: Path, fault: Fault
) -> None:
    async with (
        training(api_server) as ml,
        faulty_api_server(api_server.kubeconfig, tmp_path) as cluster,
        opened(cluster.kubeconfig, ml.name, pages) as page,
    ):
        start = page.get_by_role("button", name="Capture", exact=True)
        cluster.faults = {"POST mldiagnosticsconnections": fault}
        await start.evaluate(WATCH_DISABLED)
        await start.click()
        await asyncio.wait_for(cluster.began.wait(), 60)
        assert await page.evaluate("window.wasDisabled")
        await expect(page.get_by_role("alert")).to_have_text(MAYBE)
        [made] = await ml.captures()
        await expect(page.get_by_role("alert")).to_contain_text(f"The capture '{made['metadata']['name']}' may have")
        await pages.check_access(page)

        cluster.faults = {}
        await start.click()
        progress = page.get_by_role("status").filter(has_text=made["metadata"]["name"])
        await expect(progress).to_contain_text("waiting for the operator")
        await expect(page.get_by_role("alert")).to_have_count(0)
        assert len(await ml.captures()) == 1
        assert made["spec"]["triggerCapture"]["target"]["ranks"] == "0,2"

        await start.click()  # another order
        await expect(progress).to_be_hidden()
        assert len(await ml.captures()) == 2


async def test_an_order_whose_connection_is_lost_is_sent_again_by_the_page(
    api_server: ApiServer, pages: CheckedPages
) -> None:
    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort("connectionreset")

    async with training(api_server) as ml, opened(api_server.kubeconfig, ml.name, pages) as page:
        await page.route(ORDERS, lambda route: route.abort("connectionreset"), times=1)
        await page.route(ORDERS, lose, times=1)
        await page.get_by_role("button", name="Capture", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="trainer-")).to_contain_text("waiting for the operator")
        await expect(page.get_by_role("alert")).to_have_count(0)
        [made] = await ml.captures()
        assert made["spec"]["triggerCapture"]["target"]["ranks"] == "0,2"
        await page.route(re.compile("/cancel$"), lose, times=1)
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
        async with asyncio.timeout(60):  # the page sends it again after a pause
            while not (await ml.captures())[0]["spec"].get("cancel"):  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.05)
        await expect(page.get_by_role("alert")).to_have_count(0)


async def test_an_api_server_that_stops_meanwhile_gets_the_order_when_it_is_back(
    api_server: ApiServer, pages: CheckedPages
) -> None:
    async with training(api_server) as ml, opened(api_server.kubeconfig, ml.name, pages) as page:
        start = page.get_by_role("button", name="Capture", exact=True)
        held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()

        async def hold(route: Route) -> None:
            held.set_result(route)

        await page.route(ORDERS, hold, times=1)
        await start.click()
        order = await asyncio.wait_for(held, 60)
        await asyncio.to_thread(api_server.stop_apiserver)
        try:
            await order.continue_()
            await expect(page.get_by_role("alert")).to_contain_text("This attempt created no capture; try again.")
        finally:
            await asyncio.to_thread(api_server.start_apiserver)
        assert await ml.captures() == []
        await start.click()
        await expect(page.get_by_role("status").filter(has_text="trainer-")).to_contain_text("waiting for the operator")
        [made] = await ml.captures()
        assert made["spec"]["triggerCapture"]["target"]["ranks"] == "0,2"


async def test_a_view_that_does_not_respond_is_said_and_gets_the_same_order_again(
    api_server: ApiServer, pages: CheckedPages
) -> None:
    orders: list[str] = []

    async def hold(route: Route) -> None:
        orders.append(json.loads(route.request.post_data or "")["orderId"])

    async with training(api_server) as ml, opened(api_server.kubeconfig, ml.name, pages) as page:
        await page.clock.install()
        await page.route(ORDERS, hold)
        start = page.get_by_role("button", name="Capture", exact=True)
        await start.click()
        await expect(start).to_be_disabled()
        await expect(page.get_by_text("Creating the capture …")).to_be_visible()
        await page.clock.fast_forward(80_000)
        await expect(page.get_by_role("alert")).to_have_text(MAYBE)
        await page.unroute(ORDERS)
        await page.clock.resume()
        await start.click()
        await expect(page.get_by_role("status").filter(has_text=f"trainer-{orders[0]}")).to_be_visible()
        assert len(await ml.captures()) == 1
