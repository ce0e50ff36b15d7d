"""The page of one run in a browser: its parts, hostile values, and a run that is deleted."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKUP = "<img src=x onerror=alert(1)>"
START = 1_790_000_000.0
PACE = (1.0, 1.0, 2.0)
"""Seconds of a step on each rank."""


def history(rank: int, attempt: int, start: float, first: int) -> list[Record]:
    """A process of 200 steps; its names and labels are markup."""
    host = {"host": f"host-{rank}", "podUid": f"uid-{rank}", "node": MARKUP, "reason": "", "message": ""}
    common = {"rank": rank, "attempt": attempt}
    records = [
        Record("phase", start, "Active", payload=host, **common),
        Record("session", start, "on-demand", payload={"state": "listening", "port": 9999}, **common),
    ]
    if rank == 0:
        records.append(Record("event", start, MARKUP, payload={"message": MARKUP}, **common))
    for at in range(200):
        t, step = start + at * PACE[rank], first + at
        metric = {"step": step, **common}
        records += [
            Record("metric", t, "step_time", PACE[rank], unit="s", **metric),
            Record("metric", t, MARKUP, float(at), labels={MARKUP: "<script>alert(2)</script>"}, **metric),
        ]
        if at % 10 == 0:
            records += [
                Record("metric", t, "loss", 400.0 - step, **metric),
                Record("metric", t, "tpu_duty_cycle", (90.0, 80.0), unit="%", **common),
                Record("heartbeat", t, "alive", step=step, payload={"intervalSeconds": 10}, **common),
            ]
        if rank == 0:
            payload = {"job_name": MARKUP, "step_count": step, "step_start_time": t}
            records.append(Record("event", t, "goodput", payload=payload, **common))
    return records


def put_hostile_run(root: Path) -> None:
    """A run of two attempts on three hosts, with a profile."""
    store = open_store(str(root))
    for rank in range(len(PACE)):
        put_records(store, "hostile", f"a0-r{rank}-aaaaaaa{rank}-00001", *history(rank, 0, START, 0))
        put_records(store, "hostile", f"a1-r{rank}-bbbbbbb{rank}-00001", *history(rank, 1, START + 500, 150))
    ended = {"phase": "Failed", "reason": "Preempted", "message": MARKUP, "started": START, "ended": START + 450}
    put_run(
        store,
        "hostile",
        name=MARKUP,
        runGroup=MARKUP,
        tags=[MARKUP, "baseline"],
        notes=f"{MARKUP}\nsecond line",
        created=START,
        started=START + 500,
        ended=START + 900,
        attempt=1,
        attempts=[{"attempt": 0, "incarnation": "aaaaaaa0", **ended}],
        configs={
            "user": {MARKUP: {"rate": 0.1, "name": MARKUP}},
            "software": {"command": "train.py", "arguments": MARKUP},
        },
    )
    store.put("hostile/plugins/profile/slow-1/host-0.xplane.pb", b"12345")
    capture = {"object": {"namespace": "ml", "name": MARKUP}, "skewMilliseconds": 1.5, "targets": [{"state": MARKUP}]}
    store.put("hostile/plugins/profile/slow-1/capture.json", json.dumps(capture).encode())


async def test_each_part_shows_hostile_values_as_text(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    put_hostile_run(tmp_path / "runs")
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/hostile")
    await expect(page.get_by_role("heading", name=MARKUP)).to_be_visible()
    await expect(page.locator(".attempt-list")).to_contain_text(MARKUP)
    await expect(page.locator(".title .tag")).to_have_text([MARKUP, "baseline"])
    await expect(page.locator(".notes")).to_have_text(f"{MARKUP}\nsecond line")
    await expect(page.locator(".place code")).to_have_text(f"train.py {MARKUP}")
    await expect(page.get_by_role("status").filter(has_text="restart")).to_contain_text("3 metrics · ┆ 1 restart")
    cards = page.locator("figure.curve")
    await expect(cards.locator("canvas")).to_have_count(3)
    await expect(cards.filter(has_text="<script>")).to_contain_text(f"{MARKUP}=<script>alert(2)</script>")
    await pages.check_access(page)

    loss = page.locator("figure[data-metric=loss]")
    await loss.locator(".u-over").hover(position={"x": 150, "y": 50})
    await expect(loss.locator(".readout")).to_contain_text("step")
    box = await loss.locator(".u-over").bounding_box()
    assert box is not None
    await page.mouse.down()
    await page.mouse.move(box["x"] + 250, box["y"] + 60)
    await page.mouse.up()
    await expect(page).to_have_url(re.compile(r"from=[0-9.]+&to=[0-9.]+"))
    await page.get_by_role("button", name="Numbers of loss").click()
    dialog = page.get_by_role("dialog", name="loss")
    rows = dialog.get_by_role("row")
    await expect(rows.nth(2)).to_be_visible()
    assert await rows.count() < 6 * 20, "the numbers are those of the zoom"
    await expect(dialog.get_by_role("link", name="CSV")).to_be_visible()
    await pages.check_access(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Reset zoom").click()
    await page.get_by_label("X axis").select_option("relative")
    await page.get_by_label("Search metrics").fill("LO")
    await expect(cards).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"axis=relative&q=LO$"))
    await page.go_back()
    await expect(page.get_by_label("X axis")).to_have_value("step")
    await page.get_by_role("button", name="List").click()
    await expect(page.locator(".sparkline polyline")).not_to_have_count(0)

    for part, text in (
        ("System", "tpu_duty_cycle"),
        ("Texts", "2 of 2 texts"),
        ("Goodput", "of 15 min went into steps that count"),
        ("Hosts", "Slow lately: rank 2 · host-2 (2.00 "),
        ("Profiles", f"1 {MARKUP}"),
        ("Configuration", f"{MARKUP}.rate"),
    ):
        await page.get_by_role("link", name=part).click()
        await expect(page.locator(".part")).to_contain_text(text)
        await pages.check_access(page)
    assert await page.locator("img").count() == 0

    linked = await pages.open(page.url.split("?")[0] + "?part=profiles&session=slow-1", width=400, scheme="dark")
    command = f"mldiag xprof create --on local {shlex.quote(f'{tmp_path}/runs/hostile')} --open"
    await expect(linked.locator(".command").filter(has_text=command)).to_be_visible()
    width = await linked.evaluate("document.documentElement.scrollWidth")
    assert width <= 400, "the page is wider than the screen"


async def test_charts_stand_in_sections_that_fold(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    names = ["loss", *(f"layer/{at:02}" for at in range(30)), "eval/loss"]
    records = [Record("metric", START + t, name, 1.0, step=t) for name in names for t in range(3)]
    store = open_store(str(tmp_path / "runs"))
    put_records(store, "many", "a0-r0-aaaaaaaa-00001", *records)
    put_run(store, "many", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/many")
    sections = page.locator("details.section")
    names_of_sections = ["Without a prefix 1 metric", "eval 1 metric", "layer 30 metrics"]
    await expect(sections.locator("summary")).to_have_text(names_of_sections)
    await expect(page.locator("figure.curve")).to_have_count(14)
    await page.get_by_role("button", name="Show 12 more of 18").click()
    await expect(page.locator("figure.curve")).to_have_count(26)
    await sections.nth(2).locator("summary").click()
    await expect(page.locator("figure.curve")).to_have_count(2)
    await expect(page).to_have_url(re.compile(r"fold=layer$"))
    await pages.check_access(page)
    again = await pages.open(page.url, width=400)
    await expect(again.locator("figure.curve")).to_have_count(2)
    await pages.check_width(again)
    await page.get_by_label("Search metrics").fill("eval")
    await expect(sections.locator("summary")).to_be_hidden()
    await expect(page.locator("figure.curve canvas")).to_be_visible()
    await page.get_by_label("Search metrics").fill("layer/07")
    await expect(page.locator("figure.curve canvas")).to_be_visible()


@pytest.mark.parametrize(("paces", "slow"), [((1.0, 1.0, 1.5), "rank 2 (1.50"), ((1.0, 2.0), "rank 1 (2.00")])
async def test_a_host_that_stays_slow_is_named_and_one_spike_is_not(
    serve: Serve, pages: CheckedPages, tmp_path: Path, paces: tuple[float, ...], slow: str
) -> None:
    store = open_store(str(tmp_path / "runs"))
    for rank, pace in enumerate(paces):
        times = [pace * (5.0 if rank == 0 and at >= 198 else 1.0) for at in range(200)]
        records = [
            Record("metric", START + at, "step_time", time, step=at, rank=rank, unit="s")
            for at, time in enumerate(times)
        ]
        put_records(store, "paced", f"a0-r{rank}-aaaaaaa{rank}-00001", *records)
    put_run(store, "paced", created=START, worldSize=len(paces))
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/paced?part=hosts")
    await expect(page.locator(".slow")).to_contain_text(f"Slow lately: {slow} ")
    await expect(page.locator(".map .ranks li")).to_have_text([f"rank {rank}" for rank in range(len(paces))])
    await expect(page.locator(".map .ends span")).to_have_count(3)
    await pages.check_access(page)


async def test_the_curve_under_the_pointer_is_named_also_among_many(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    store, many = open_store(str(tmp_path / "runs")), 20
    for rank in range(many):
        records = [Record("metric", START + at, "loss", float(rank), step=at, rank=rank) for at in range(11)]
        put_records(store, "wide", f"a0-r{rank}-{rank:08x}-00001", *records)
    put_run(store, "wide", created=START, worldSize=many)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/wide?by=rank&metric=loss")
    loss = page.locator("figure[data-metric=loss]")
    await expect(loss.locator(".legend li")).to_have_count(13)
    await loss.get_by_role("button", name="and 8 more").click()
    await expect(loss.locator(".legend li")).to_have_count(21)
    box = await loss.locator(".u-over").bounding_box()
    assert box is not None
    for y, rank in ((1.0, many - 1), (box["height"] - 1, 0)):
        await loss.locator(".u-over").hover(position={"x": box["width"] / 2, "y": y})
        await expect(loss.locator(".readout")).to_have_text(re.compile(rf"^step 5 · .*{rank} {rank}$"))
        await expect(loss.locator(".legend .near")).to_have_text(re.compile(rf"{rank} {rank}$"))
    await pages.check_access(page)


async def test_charts_have_the_words_of_texts_and_findings(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    text = Record("event", START + 5, "note", step=5, payload={"message": f"rate lowered {MARKUP}"})
    losses = [Record("metric", START + at, "loss", 1.0, step=at) for at in range(11)]
    put_records(store, "noted", "a0-r0-aaaaaaaa-00001", *losses, text)
    put_run(store, "noted", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/noted")
    await expect(page.get_by_role("status").filter(has_text="1 metric")).to_have_text("1 metric · ▾ 1 text")
    loss = page.locator("figure[data-metric=loss]")
    box = await loss.locator(".u-over").bounding_box()
    assert box is not None
    await loss.locator(".u-over").hover(position={"x": box["width"] / 2, "y": 50})
    await expect(loss.locator(".readout")).to_contain_text(f"note: rate lowered {MARKUP}")


async def test_a_chart_is_as_wide_as_its_card(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    put_hostile_run(tmp_path / "runs")
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/hostile")
    loss = page.locator("figure[data-metric=loss]")
    await expect(loss.locator("canvas")).to_have_count(1)
    for width in ("50%", "100%"):
        await loss.evaluate("(card, width) => { card.style.width = width; }", width)
        inside = await loss.locator(".curve-plot").evaluate("(box) => box.clientWidth")
        await expect(loss.locator(".uplot")).to_have_css("width", f"{inside}px")


async def test_a_run_that_is_deleted_stays_with_a_note(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    put_hostile_run(tmp_path / "runs")
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/hostile?metric=loss")
    await expect(page.locator("figure.curve canvas")).to_be_visible()
    shutil.rmtree(tmp_path / "runs/hostile")
    await expect(page.locator(".state")).to_contain_text("This run has been deleted")
    await expect(page.locator("figure.curve canvas")).to_be_visible()
    await expect(page.get_by_role("link", name="All runs")).to_be_visible()
    missing = await pages.open(page.url.replace("hostile", "other"))
    await expect(missing.get_by_role("alert")).to_contain_text("This source has no such run")
    for gone in (page, missing):  # they ask for their stream again, and the console has each response
        await pages.close(gone)
    pages.expect_errors()


async def test_values_that_are_not_finite_are_marked_and_counted(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    values = [0.7571, float("nan"), float("inf")]
    losses = [Record("metric", START + at, "loss", value, at) for at, value in enumerate(values)]
    put_records(open_store(str(tmp_path / "runs")), "diverged", "a0-r0-aaaaaaaa-00001", *losses)
    put_run(open_store(str(tmp_path / "runs")), "diverged", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/diverged")
    await expect(page.locator("figure[data-metric=loss] .readout")).to_have_text("inf, 1 NaN, 1 inf")
    await page.get_by_role("button", name="List").click()
    cells = page.locator("tr[data-metric=loss] td")
    await expect(cells.nth(2)).to_have_text("inf")
    await expect(cells.nth(4)).to_have_text("0.7571")


async def test_an_account_with_other_bounds_than_the_run_says_so(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "runs"))
    moments = [{"job_start_time": START}, {"step_count": 0, "step_start_time": START + 1}, {"job_end_time": START + 9}]
    events = [
        Record("event", START + at, "goodput", payload={"job_name": "job", **payload})
        for at, payload in enumerate(moments)
    ]
    put_records(store, "longer", "a0-r0-aaaaaaaa-00001", *events)
    put_run(store, "longer", created=START, started=START, ended=START + 60, worldSize=1)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/longer?part=goodput")
    await expect(page.get_by_text("The account is from the first job start")).to_be_visible()
    await expect(page.get_by_text("of 9 s went into steps that count")).to_be_visible()
