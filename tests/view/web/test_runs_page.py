"""The list of runs and the comparison in a browser: links, selection, keyboard and changes of the files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.programs.pages import visit
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")
MARKUP = "<b>bold</b>"
MANY = 300


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs by the SDK with different configurations, and many that have only their run.json."""
    root = tmp_path_factory.mktemp("runs")
    for name, rate in (("slow", 0.1), ("fast", 0.2)):
        configs = {"rate": rate, "layers": 12, "note": MARKUP}
        with machinelearning_run(
            name, run_group="pair", configs=configs, storage=str(root), run_workload_id=name
        ) as run:
            for step in range(30):
                run.step(step)
                metrics.record("loss", rate * (30 - step), step=step)
    store = open_store(str(root))
    for number in range(MANY):
        phase, group = ("Failed", "odd") if number % 2 else ("Completed", "even")
        put_run(store, f"old-{number}", phase=phase, runGroup=group, created=float(number))
    return root


async def names(page: Page) -> list[str]:
    return [text.strip() for text in await page.locator("tbody th a").all_inner_texts()]


async def test_a_link_keeps_what_the_list_shows(serve: Serve, pages: CheckedPages, root: Path) -> None:
    url = await serve(root)
    page = await pages.open(url, width=1600)
    await expect(page.get_by_text(f"{MANY + 2} runs")).to_be_visible()
    assert await page.locator("tbody tr").count() < 100, "only rows on the screen are elements"
    await expect(page.get_by_role("img", name="productive").first).to_be_visible()
    await page.get_by_role("button", name="Failed").click()
    await page.get_by_role("columnheader", name="Age").get_by_role("button").click()
    await page.get_by_role("columnheader", name="Age").get_by_role("button").click()
    await expect(page.locator("tbody th a").first).to_have_text("name of old-1")
    await page.keyboard.press("/")
    await page.keyboard.type("old-29")
    await expect(page.get_by_text(f"6 of {MANY + 2} runs")).to_be_visible()
    shown = await names(page)
    assert shown == [f"name of old-{number}" for number in (29, 291, 293, 295, 297, 299)]
    await page.get_by_label("By group").check()
    await expect(page.get_by_role("button", name="odd")).to_be_visible()
    other = await pages.open(page.url, width=400, scheme="dark")
    await expect(other.locator("tbody th a")).to_have_count(6)
    assert await names(other) == shown
    await page.get_by_role("button", name="odd").click()
    await expect(page.locator("tbody th a")).to_have_count(0)
    await page.go_back()
    await expect(page.locator("tbody th a")).to_have_count(6)
    await page.go_back()
    await expect(page.get_by_label("By group")).not_to_be_checked()
    await page.get_by_label("Search runs").fill("nothing like this")
    await page.get_by_role("button", name="Show all runs").click()
    await expect(page.locator("tbody th a").first).to_be_visible()
    put_run(open_store(str(root)), "newest", created=4e9)
    await visit(page, url)
    await expect(page.get_by_role("link", name="name of newest")).to_be_visible()
    await page.get_by_role("region", name="Table of runs").press("End")
    await expect(page.get_by_role("link", name="name of old-0", exact=True)).to_be_focused()


async def test_selected_runs_are_compared(serve: Serve, pages: CheckedPages, root: Path) -> None:
    url = await serve(root)
    page = await pages.open(f"{url}?group=pair", width=1600)
    for name in ("slow", "fast"):
        await page.get_by_label(f"Compare {name}").check()
    await page.get_by_role("link", name="Compare 2").click()
    await expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    await expect(page.locator("figure canvas").first).to_be_visible()
    await expect(page.locator("figcaption").first).to_contain_text("loss")
    changed = page.get_by_role("row", name="user.rate")
    await expect(changed.get_by_role("cell")).to_have_text(["0.1", "0.2"])
    equal = page.get_by_role("row", name="user.note")
    await expect(equal).to_be_hidden()
    await page.get_by_text("equal keys").click()
    await expect(equal.get_by_role("cell")).to_have_text([MARKUP])
    await expect(page.locator(".step-ridge")).to_have_count(2)
    await expect(page.get_by_role("row", name="productive")).to_contain_text("%")
    plot = page.locator("figure .u-over").first
    await plot.hover(position={"x": 60, "y": 50})
    await page.mouse.down()
    await plot.hover(position={"x": 160, "y": 60})
    await page.mouse.up()
    await expect(page).to_have_url(re.compile("from=[0-9.]+&to=[0-9.]+"))
    await page.get_by_role("button", name="Numbers of loss").click()
    rows = page.get_by_role("dialog", name="loss").get_by_role("row")
    await expect(rows.nth(2)).to_be_visible()
    assert await rows.count() < 61, "the numbers are those of the zoom"
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Reset zoom").click()
    await page.get_by_label("X axis").select_option("relative")
    await expect(page).to_have_url(re.compile("axis=relative"))
    again = await pages.open(page.url, width=400, scheme="dark")
    await expect(again.get_by_label("X axis")).to_have_value("relative")
    await expect(again.locator("figure canvas").first).to_be_visible()
    assert await again.evaluate("document.documentElement.scrollWidth") == 400, "the page fits the screen"
    await page.go_back()
    await expect(page.get_by_label("X axis")).to_have_value("")
    await page.get_by_role("button", name="Remove fast").click()
    await expect(page.locator(".step-ridge")).to_have_count(1)
    await page.go_back()
    await expect(page.locator(".step-ridge")).to_have_count(2)


async def test_phases_are_counted_among_the_runs_of_the_search(serve: Serve, pages: CheckedPages, root: Path) -> None:
    page = await pages.open(await serve(root) + "?phase=Failed", width=1600)
    phases = page.get_by_role("group", name="Phases")
    await expect(phases.get_by_role("button", name="Failed")).to_have_text(f"Failed {MANY // 2}")
    await page.get_by_label("Search runs").fill("old-29")
    await expect(phases.get_by_role("button", name="Failed")).to_have_text("Failed 6")
    await expect(phases.get_by_role("button", name="Completed")).to_have_text("Completed 5")
    await page.get_by_label("Search runs").fill("old-299")
    await expect(page.get_by_text("1 of 30")).to_be_visible()  # other tests add runs


async def test_runs_are_selected_by_a_range_and_all_at_once(serve: Serve, pages: CheckedPages, root: Path) -> None:
    page = await pages.open(await serve(root) + "?q=old-29&sort=name&run=runs/gone", width=1600)
    boxes = page.locator("tbody").get_by_role("checkbox")
    everything = page.get_by_label("Select all")
    await expect(boxes).to_have_count(11)
    await boxes.nth(1).click()
    await expect(boxes.nth(1)).to_be_checked()
    await expect(everything).to_have_js_property("indeterminate", value=True)
    await boxes.nth(4).click(modifiers=["Shift"])
    await expect(page.get_by_text("Compare 5")).to_be_visible()  # with the one that is not shown
    for at in range(11):
        await expect(boxes.nth(at)).to_be_checked(checked=1 <= at <= 4)
    await boxes.nth(2).click(modifiers=["Shift"])
    await expect(page.get_by_text("Compare 2")).to_be_visible()
    await everything.check()
    await expect(page.get_by_text("Compare 12")).to_have_attribute("aria-disabled", "true")
    await pages.check_access(page)
    again = await pages.open(page.url, width=1600)
    await expect(again.get_by_label("Select all")).to_be_checked()
    await everything.uncheck()
    await expect(page.get_by_text("Compare 1", exact=True)).to_be_visible()
    await expect(boxes.first).not_to_be_checked()


async def test_configurations_and_metrics_are_columns(serve: Serve, pages: CheckedPages, root: Path) -> None:
    page = await pages.open(await serve(root), width=1600)
    await page.get_by_text("Columns").click()
    field = page.get_by_label("Add a configuration or metric")
    await page.get_by_label("Search runs").fill("pair")
    await expect(page.locator("datalist option[value='metric:loss']")).to_have_count(1)
    for name in ("config:user.rate", "metric:loss", "config:user.note"):
        await field.fill(name)
        await field.press("Enter")
    await page.get_by_text("Columns").click()
    rates = page.locator("tbody td.c-value")
    await expect(rates).to_have_text(["0.2", "0.2", MARKUP, "0.1", "0.1", MARKUP])
    await page.get_by_role("columnheader", name="rate").get_by_role("button").click()
    await expect(rates.first).to_have_text("0.1")
    await page.get_by_label("Search runs").fill("")
    await expect(rates.first).to_have_text("0.1")
    await page.get_by_role("columnheader", name="loss").get_by_role("button").click()
    await page.get_by_role("columnheader", name="loss").get_by_role("button").click()
    assert (await names(page))[:2] == ["fast", "slow"]
    await pages.check_access(page)
    again = await pages.open(page.url, width=400, scheme="dark")
    await expect(again.locator("tbody td.c-value").first).to_have_text("0.2")
    await pages.check_width(again)
    await again.get_by_text("Columns").click()
    menu = await again.locator(".menu-box").bounding_box()
    assert menu is not None
    assert 0 <= menu["x"] <= menu["x"] + menu["width"] <= 400
    await page.get_by_text("Columns").click()
    await page.get_by_label("metric:loss").click()
    await expect(page.get_by_role("columnheader", name="loss")).to_have_count(0)


async def test_a_number_of_the_runs_is_drawn_against_another_one(serve: Serve, pages: CheckedPages, root: Path) -> None:
    page = await pages.open(await serve(root) + "?group=pair&value=config:user.rate&value=metric:loss", width=1600)
    await page.get_by_role("button", name="Scatter").click()
    dots = page.locator(".scatter").get_by_role("link")
    await expect(dots).to_have_count(2)
    of_one = re.compile(r"^(slow: rate 0.1, loss 0.1|fast: rate 0.2, loss 0.2)$")
    await expect(dots.first).to_have_accessible_name(of_one)
    await pages.check_access(page)
    await page.get_by_label("Vertical axis").select_option("config:user.rate")
    await expect(page).to_have_url(re.compile("y=config:user.rate"))
    await page.get_by_label("Vertical axis").focus()
    await page.keyboard.press("End")
    await expect(page).not_to_have_url(re.compile("y=config:user.rate"))
    await expect(page.get_by_label("Vertical axis")).to_be_focused()
    await page.get_by_label("Search runs").fill("fast")
    await expect(dots).to_have_count(1)
    again = await pages.open(page.url, width=400, scheme="dark")
    await expect(again.locator(".scatter").get_by_role("link")).to_have_count(1)
    await pages.check_width(again)
    await again.locator(".scatter").get_by_role("link").click()
    await expect(again.get_by_role("heading", name="fast")).to_be_visible()


async def test_the_keys_of_a_page_are_listed(serve: Serve, pages: CheckedPages, root: Path) -> None:
    page = await pages.open(await serve(root), width=400)
    await page.get_by_label("Search runs").press("?")
    await expect(page.get_by_label("Search runs")).to_have_value("?")
    await page.get_by_label("Search runs").press("Escape")
    await page.get_by_role("link", name="mldiagnostics").press("?")
    keys = page.get_by_role("dialog", name="Keys")
    await expect(keys.get_by_role("row", name="Space")).to_contain_text("Select the run")
    await pages.check_access(page)
    await pages.check_width(page)
    await page.keyboard.press("Escape")
    await expect(keys).to_have_count(0)
    await page.get_by_role("button", name="Keys").click()
    await expect(keys).to_be_visible()


async def test_an_old_link_has_a_clear_page(serve: Serve, pages: CheckedPages, root: Path) -> None:
    url = await serve(root)
    page = await pages.open(f"{url}compare?run={root.name}/slow&run={root.name}/gone")
    await expect(page.get_by_role("alert")).to_contain_text("no such run")
    await expect(page.locator(".step-ridge")).to_have_count(1)
    unknown = await pages.open(f"{url}an/old/address")
    await expect(unknown.get_by_role("alert")).to_contain_text("no page")
    assert all("404" in error for error in pages.expect_errors())


async def test_tags_are_a_column_and_are_found_by_the_search(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "plain")
    url = await serve(tmp_path / "runs")
    page = await pages.open(url, width=1400)
    await expect(page.locator("tbody th a")).to_have_text("name of plain")
    await expect(page.get_by_role("columnheader", name="Tags")).to_have_count(0)
    put_run(store, "tagged", tags=["baseline", MARKUP], notes="with the new data")
    await expect(page.get_by_role("columnheader", name="Tags")).to_be_visible()
    await expect(page.locator("tbody .tag")).to_have_text(["baseline", MARKUP])
    await pages.check_access(page)
    for words in ("baseline", "new data"):
        await page.get_by_role("searchbox").fill(words)
        await expect(page.locator("tbody th a")).to_have_text(["name of tagged"])


@pytest.mark.parametrize("width", [400, 1000, 1600])
async def test_each_row_has_the_height_by_which_the_table_scrolls(
    width: int, serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "plain")
    tags = [f"a-long-tag-{number}" for number in range(12)]
    put_run(store, "tagged", tags=tags, notes="several words of notes that are longer than their column " * 4)
    url = await serve(tmp_path / "runs")
    for columns in ("", "?columns=tags,notes,phase"):
        page = await pages.open(f"{url}{columns}", width=width)
        await expect(page.locator("tbody th a")).to_have_count(2)
        await expect(page.locator("tbody th a").first).to_be_visible()
        heights = "rows => rows.map((row) => Math.round(row.getBoundingClientRect().height))"
        assert await page.locator("tbody tr:not(.space)").evaluate_all(heights) == [34, 34]
        if columns or width > 700:
            await expect(page.get_by_title(", ".join(tags))).to_be_visible()
