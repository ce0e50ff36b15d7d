"""Table and page of a report: complete and within the width, for any log."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.render.comparison import comparison_table, names
from mldiagnostics.goodput.render.page import page
from mldiagnostics.goodput.render.palette import PRODUCTIVE, paint
from mldiagnostics.goodput.render.table import alarm, bar, table
from mldiagnostics.goodput.render.words import duration, label, percent
from mldiagnostics.goodput.report import GoodputReport, make_report
from mldiagnostics.text.terminal import encodable
from support.goodput.histories import logs, moments
from support.goodput.story import S, Story, eventful, finished

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.events.event import Event

VOID = {"br", "meta"}


def report_of(events: Iterable[Event], now: int, **options: object) -> tuple[GoodputReport, Ledger]:
    ledger = Ledger(splits=False)
    for event in events:
        ledger.add(event)
    return make_report(ledger, now=now, **options), ledger


@pytest.fixture(scope="module")
def long() -> tuple[GoodputReport, Ledger]:
    job = eventful()
    return report_of(
        job.events, job.clock, windows_s=[600], devices=256, name="/logs/trainer", run="b", runs=["a", "b"]
    )


@pytest.fixture(scope="module")
def short() -> tuple[GoodputReport, Ledger]:
    job = finished()
    return report_of(job.events, job.clock, name="/logs/short")


def test_the_table_has_the_main_figures(long: tuple[GoodputReport, Ledger]) -> None:
    text = table(long[0])
    for part in (
        "run b",
        "other runs of this name: a",
        "preemption",
        "MTTF",
        "MTTR",
        "14 saves of 3 s",
        "device-hours",
    ):
        assert part in text
    rows = re.findall(r"^  (productive|infrastructure recovery|custom: eval) +(\S.*?)  +([\d.]+) ", text, re.MULTILINE)
    assert [name for name, *_ in rows] == ["productive", "infrastructure recovery", "custom: eval"]
    assert float(rows[0][2]) == pytest.approx((long[0].cumulative.goodput or 0) * 100, abs=0.01)


def test_a_run_with_the_name_of_its_log_is_named_once(short: tuple[GoodputReport, Ledger]) -> None:
    run = "0a" * 32
    report = replace(short[0], name=f"/logs/runs/{run}", run=run)
    assert table(report).splitlines()[0] == f"/logs/runs/{run}"
    assert table(replace(report, name="")).splitlines()[0] == "run 0a0a0a0a0a0"


def test_colours_are_for_terminals_only(long: tuple[GoodputReport, Ledger]) -> None:
    plain, coloured = table(long[0]), table(long[0], colour=True)
    assert "\033" not in plain
    assert re.sub(r"\033\[\d+m", "", coloured) == plain


def test_problems_are_shown_first(long: tuple[GoodputReport, Ledger]) -> None:
    report, ledger = long
    assert "HANG" not in table(report)
    stuck = make_report(ledger, now=round(report.now * 1e6) + 600 * S)
    assert table(stuck).splitlines()[2] == "HANG SUSPECTED: step 700 for 10 min 02 s, expected at most 30 s"
    assert f'<p class="alarm">{table(stuck).splitlines()[2]}' in page([(stuck, ledger)])
    assert comparison_table([report, stuck, replace(stuck, ended=stuck.now)]).splitlines()[1].split() == [
        "state", "running", "HANG?", "ended",
    ]  # fmt: skip


def test_a_job_that_fails_before_each_first_step_is_not_back() -> None:
    job = Story()
    job.start()
    job.train(0, 60)
    for _ in range(3):
        job.die("oom")
        job.start()
    report, _ = report_of(job.events, job.clock + 5 * S)
    lost = report.disruptions[0]
    assert alarm(report).startswith("NOT BACK for 6 min 25 s, 3 starts: no step since ")
    assert alarm(report).endswith("(oom)")
    assert "NOT BACK" in comparison_table([report, report]).splitlines()[1]
    assert (lost.starts, lost.resumed, report.failures.count) == (3, None, 1)
    job.log(EventCode.STEP_START, 61)
    assert not alarm(report_of(job.events, job.clock + 5 * S)[0])
    assert not alarm(replace(report, ended=report.now))


def test_an_overhead_above_1_is_shown_as_more_than_100_percent(long: tuple[GoodputReport, Ledger]) -> None:
    report = replace(long[0], checkpoints=replace(long[0].checkpoints, overhead=14.2))
    assert ", now >100 %)" in table(report)


def test_a_narrow_terminal_has_no_bars(long: tuple[GoodputReport, Ledger]) -> None:
    text = table(long[0], width=60)
    assert not set(text) & set("█▌░")
    assert "infrastructure recovery" in text


def test_terminals_without_block_characters_show_the_table(long: tuple[GoodputReport, Ledger]) -> None:
    text = table(long[0])
    assert encodable(text, "utf-8") == text
    plain = encodable(text, "ascii")
    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in text.splitlines()]
    assert "####" in plain
    assert "?" not in plain


def test_runs_side_by_side(long: tuple[GoodputReport, Ledger], short: tuple[GoodputReport, Ledger]) -> None:
    text = comparison_table([replace(long[0], windows=(), devices=None), short[0]])
    assert text.splitlines()[0].split() == ["trainer", "short"]
    assert not re.search("device|last", text)
    many = comparison_table([short[0]] * 9)
    assert all(len(line) <= 80 for line in many.splitlines())
    assert many.count("elapsed") == 3  # four of them fit beside each other


def test_requested_windows_are_in_the_comparison(long: tuple[GoodputReport, Ledger]) -> None:
    text = comparison_table([long[0], long[0], replace(long[0], windows=())])
    assert re.search(r"^  last 10 min % +(\d\d\.\d\d) +\1 +-$", text, re.MULTILINE)
    assert re.search(r"^  device-hours +37.3 +37.3 +37.3$", text, re.MULTILINE)


def test_names_are_as_long_as_needed_to_be_unique(short: tuple[GoodputReport, Ledger]) -> None:
    def named(*logs: str) -> list[str]:
        return names([replace(short[0], name=log, run=f"r{number}") for number, log in enumerate(logs)])

    assert named("/a/x", "/b/y.jsonl") == ["x", "y"]
    assert named("/a/x", "/b/x") == ["a/x", "b/x"]
    assert named("/a/x", "/a/x") == ["r0", "r1"]
    assert named("/a/x", "/a/x", "/a/y") == ["x r0", "x r1", "y"]
    assert named("", "") == ["r0", "r1"]
    assert named("gs://bucket/x/") == ["x"]
    assert named("/runs/" + "0a" * 32, "/runs/mine") == ["0a0a0a0a0a0", "mine"]


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(0.5, 4, rest=".") == "██.."
    assert bar(0.28125, 4, rest=".") == "█▏.."
    assert bar(2.0, 3) == "███"
    assert bar(-1.0, 3) == "   "


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0, "0 s"),
        (0.00002, "20 µs"),
        (0.0123, "12.3 ms"),
        (2.3456, "2.35 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (3599.6, "1 h"),
        (7384, "2 h 03 min"),
        (90_061, "1 d 01 h"),
    ],
)
def test_durations_as_text(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_only_exact_shares_are_shown_as_0_or_100_percent() -> None:
    assert [percent(share) for share in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0, None)] == [
        "0.00",
        "<0.01",
        "50.00",
        ">99.99",
        "100.00",
        "-",
    ]


def test_every_bucket_has_its_own_label_and_colour() -> None:
    buckets = [
        bucket.name for bucket in BadputType if bucket.name not in {"CUSTOM_BADPUT_EVENTS", "DATA_LOADING_ASYNC"}
    ]
    assert len({paint(bucket) for bucket in [PRODUCTIVE, *buckets]}) == len(buckets) + 1
    assert len({label(bucket) for bucket in buckets}) == len(buckets)
    assert label("CUSTOM_BADPUT_EVENTS.EVAL") == "custom: eval"
    assert paint("CUSTOM_BADPUT_EVENTS.EVAL") not in {paint(bucket) for bucket in [PRODUCTIVE, *buckets]}


# Linear RGB as seen without red, green or blue cones: Machado, Oliveira & Fernandes, IEEE TVCG 15 (6), 2009.
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def seen(colour: str, vision: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """A colour in CIE L*a*b*, as seen in one kind of vision."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    red, green, blue = (
        min(1.0, max(0.0, sum(weight * part for weight, part in zip(row, linear, strict=True)))) for row in vision
    )
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_are_distinct_in_any_vision(vision: str, ground: str) -> None:
    buckets = [PRODUCTIVE, *(bucket.name for bucket in BadputType if bucket.name != "DATA_LOADING_ASYNC")]
    for one, other in combinations(map(paint, buckets), 2):
        distance = math.dist(*(seen(getattr(each, ground), VISIONS[vision]) for each in (one, other)))
        assert distance > (12 if one.hatched == other.hatched else 5)


class Page(HTMLParser):
    """A parsed page: its structure, its data and the resources that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.buttons: list[dict[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []
        data = re.search(r'<script type="application/json" id="runs">(.*?)</script>', text, re.DOTALL)
        assert data is not None
        self.runs = json.loads(data[1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag == "button":
            self.buttons.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_loads_nothing(long: tuple[GoodputReport, Ledger]) -> None:
    text = page([long])
    assert Page(text).outside == []
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'" in text


def test_the_page_draws_the_whole_run_in_each_window(
    long: tuple[GoodputReport, Ledger], short: tuple[GoodputReport, Ledger]
) -> None:
    read = Page(page([long, short]))
    assert len(read.runs) == 2
    for run, report in zip(read.runs, (long[0], short[0]), strict=True):
        assert len(run["layers"]) == len(run["windows"])
        for layer, (_, start, end) in zip(run["layers"], run["windows"], strict=True):
            assert (layer["from"], layer["to"]) == pytest.approx((start, end))
            assert sum(piece[0] for piece in layer["pieces"]) == pytest.approx(end - start)
        drawn = spent(run, run["layers"][0])
        assert drawn["productive"] == pytest.approx(report.cumulative.productive_s * 1e3)
        for bucket, seconds in report.cumulative.unproductive_s.items():
            assert drawn[label(bucket)] == pytest.approx(seconds * 1e3)


def spent(run: dict[str, list[dict[str, str]]], layer: dict[str, list[list[object]]]) -> dict[str, float]:
    """Milliseconds by kind that a layer draws."""
    sums: dict[str, float] = {}
    for long, _, _, kind in layer["pieces"]:
        parts = kind if isinstance(kind, list) else [kind, long]
        for number, length in zip(parts[::2], parts[1::2], strict=True):
            name = run["kinds"][number]["label"]
            sums[name] = sums.get(name, 0.0) + length
    return sums


def test_each_disruption_has_a_window(long: tuple[GoodputReport, Ledger]) -> None:
    read = Page(page([long]))
    close_ups = [button for button in read.buttons if "data-window" in button]
    assert len(close_ups) == 2
    for button, disruption in zip(close_ups, long[0].disruptions, strict=True):
        _, start, end = read.runs[0]["windows"][int(button["data-window"] or 0)]
        assert start < (disruption.lost - long[0].started) * 1e3 < end
        assert start < (disruption.restarted - long[0].started) * 1e3 < end


def test_names_from_logs_are_escaped() -> None:
    job = Story()
    job.start()
    job.train(0, 20)
    evil = "</script><img src=x onerror=alert(1)>"
    job.die(evil)
    job.start()
    job.train(10, 30)
    report, ledger = report_of(job.events, job.clock, name=evil, run=evil, runs=[evil, "b" + evil])
    text = page([(report, ledger), (report, ledger)])
    assert "<img" not in text
    assert Page(text).outside == []


def test_a_long_job_is_a_small_page() -> None:
    job = Story()
    for attempt in range(30):
        job.start()
        job.train(attempt * 400, attempt * 400 + 400)
        job.die()
    report, ledger = report_of(job.events, job.clock, windows_s=[60, 3600])
    assert len(page([(report, ledger)])) < 1_000_000
    assert all(len(layer["pieces"]) <= 3500 for layer in Page(page([(report, ledger)])).runs[0]["layers"])


@given(st.data())
def test_any_log_can_be_shown(data: st.DataObject) -> None:
    events = data.draw(logs())
    report, ledger = report_of(events, data.draw(moments(events)), windows_s=[5], devices=8)
    width = data.draw(st.integers(80, 120))
    assert all(len(line) <= width for line in table(report, width=width).splitlines())
    Page(page([(report, ledger)]))
    narrow = data.draw(st.integers(24, 80))
    assert all(len(line) <= narrow for line in comparison_table([report, report], width=narrow).splitlines())


def test_no_column_of_the_page_is_wider_than_a_narrow_screen(short: tuple[GoodputReport, Ledger]) -> None:
    text = page([short])
    columns = re.findall(r"minmax\((.*?), 1fr\)", text)
    assert columns == ["min(430px, 100%)"]  # a bare width cuts what is right of it on a narrower screen
    assert ".columns > div { min-width: 0; }" in text  # nor does what is in it
