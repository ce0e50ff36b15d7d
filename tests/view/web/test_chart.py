"""A chart as it is drawn: the labels of its axis of times, and a spike in a band."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.programs.pages import DEADLINE_S
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

START = 1_790_000_000.0
MANY = 50_000
"""Points of a curve, many times the pixels of its chart."""

RECORD_LABELS = """() => {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    window.labels = new Map();
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        if (this.textAlign === "center") {
            const half = this.measureText(text).width / 2;
            window.labels.set(text + "@" + x, { text, from: x - half, to: x + half, width: this.canvas.width });
        }
        return draw.call(this, text, x, y);
    };
}"""

LABELS = """() => new Promise((resolve) => {
    const look = () => (window.labels.size > 2 ? resolve([...window.labels.values()]) : requestAnimationFrame(look));
    look();
})"""

SPIKE = """(figure) => new Promise((resolve) => {
    const look = () => {
        const canvas = figure.querySelector("canvas"), { width, height } = canvas;
        const left = Math.round(width / 2) - 60, top = Math.round(height / 4);
        const copy = new OffscreenCanvas(120, 2).getContext("2d");
        copy.drawImage(canvas, -left, -top);
        const { data } = copy.getImageData(0, 0, 120, 2);
        data.some((alpha, at) => at % 4 === 3 && alpha > 100) ? resolve() : requestAnimationFrame(look);
    };
    look();
})"""
"""Waits until the middle of a chart, where only a spike comes, has a pixel that people see."""


@pytest.mark.parametrize("axis", ["time", "relative"])
@pytest.mark.parametrize("span_s", [4, 700, 300_000])
async def test_labels_of_times_differ_and_are_whole(
    serve: Serve, pages: CheckedPages, tmp_path: Path, axis: str, span_s: int
) -> None:
    losses = [Record("metric", START + at * span_s / 20, "loss", 1.0, at) for at in range(21)]
    put_records(open_store(str(tmp_path / "runs")), "timed", "a0-r0-aaaaaaaa-00001", *losses)
    put_run(open_store(str(tmp_path / "runs")), "timed", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + f"runs/runs/timed?axis={axis}&metric=loss", width=1400)
    await expect(page.locator("figure[data-metric=loss] canvas")).to_be_visible()
    await page.evaluate(RECORD_LABELS)
    await page.set_viewport_size({"width": 1200, "height": 900})
    labels: list[dict[str, Any]] = await page.evaluate(LABELS)
    drawn = sorted(labels, key=lambda label: float(label["from"]))
    for label, following in pairwise(drawn):
        assert label["text"] != following["text"]
        assert label["to"] < following["from"]
    assert drawn[0]["from"] >= 0
    assert drawn[-1]["to"] <= drawn[-1]["width"]


async def test_a_spike_is_seen_in_a_band(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    values = [10.0 if at == MANY // 2 else 1.0 for at in range(MANY)]
    losses = [Record("metric", START + at, "loss", value, at) for at, value in enumerate(values)]
    put_records(open_store(str(tmp_path / "runs")), "spiked", "a0-r0-aaaaaaaa-00001", *losses)
    put_run(open_store(str(tmp_path / "runs")), "spiked", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/spiked?metric=loss")
    async with asyncio.timeout(DEADLINE_S):
        await page.locator("figure[data-metric=loss]:has(canvas)").evaluate(SPIKE)


async def test_a_chart_stays_while_its_newest_points_cannot_be_read(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    losses = [Record("metric", START + at, "loss", 1.0, at, rank=0) for at in range(9)]
    put_records(open_store(str(tmp_path / "runs")), "first", "a0-r0-aaaaaaaa-00001", *losses)
    put_run(open_store(str(tmp_path / "runs")), "first", created=START)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/first")
    figure = page.locator("figure[data-metric=loss]")
    await expect(figure.locator("canvas")).to_be_visible()
    await page.route("**/curves?**", lambda route: route.fulfill(status=503, json={"detail": "The bucket is away."}))
    await page.get_by_label("Curves").select_option("Each host")
    await expect(figure.get_by_role("alert")).to_have_text("The bucket is away.")
    await expect(figure.locator("canvas")).to_be_visible()
    await page.unroute("**/curves?**")
    await page.get_by_label("Curves").select_option("Each device")
    await expect(figure.get_by_role("alert")).to_have_count(0)
    pages.expect_errors()
