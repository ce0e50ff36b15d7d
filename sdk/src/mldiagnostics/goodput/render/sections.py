"""The sections of the page as HTML, with untrusted text escaped; pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mldiagnostics.goodput.render.comparison import names
from mldiagnostics.goodput.render.drawing import CLOSE_UPS
from mldiagnostics.goodput.render.palette import PRODUCTIVE, paint
from mldiagnostics.goodput.render.table import NO_START, alarm, excluded, figures, phases, run_of
from mldiagnostics.goodput.render.words import duration, label, moment, percent, share_of, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mldiagnostics.goodput.report import GoodputReport, TimeBreakdown


def section(report: GoodputReport, number: int, windows: Sequence[str]) -> str:
    """Return the section of one run; `windows` are the names of its layers."""
    return f"<section>{''.join(_blocks(report, number, windows))}</section>"


def _blocks(report: GoodputReport, number: int, windows: Sequence[str]) -> Iterator[str]:
    yield _head(report)
    yield _timeline(report, number, windows)
    yield f'<div class="columns"><div>{_partition(report.cumulative)}</div><div>{_figures(report)}</div></div>'
    if report.disruptions:
        yield _disruptions(report, number, windows)
    if report.disruptions or report.windows:
        yield _stretches(report)
    for title, counts in (("Corrected in the log", report.corrected), ("Ignored in the log", report.ignored)):
        if counts:
            table = _table(
                ["count", "reason"], ([f"{count:,}", reason] for reason, count in counts.items()), numbers={0}
            )
            yield f'<h2>{title}</h2><div class="narrow">{table}</div>'


def comparison(
    reports: Sequence[GoodputReport], heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]
) -> str:
    """Return the figures of several runs as one table."""
    bars = "".join(f"<td>{_divided(report.cumulative)}</td>" for report in reports)
    lines = [
        f'<tr class="group"><td colspan="{len(heads) + 1}">{escape(name)}</td></tr>'
        if not texts
        else f"<tr><td>{escape(name)}</td>" + "".join(f'<td class="n">{escape(text)}</td>' for text in texts) + "</tr>"
        for name, texts in rows
    ]
    columns = "".join(f'<th class="n">{escape(head)}</th>' for head in heads)
    return (
        f'<section><h1>Comparison</h1><div class="scroll"><table class="beside"><tr><th></th>{columns}</tr>'
        f"<tr><td></td>{bars}</tr>{''.join(lines)}</table></div></section>"
    )


def _head(report: GoodputReport) -> str:
    whole = report.cumulative
    period = f"{moment(whole.start)} to {moment(whole.end)} UTC, ended"
    if report.stopped:
        period = f"{moment(whole.start)} to {moment(whole.end)} UTC, no end recorded"
    elif report.ended is None:
        period = f"since {moment(whole.start)} UTC, as of {moment(report.now)}"
    start = "" if report.start_told else f"<br>{NO_START}"
    others = [other for other in report.runs if other != report.run]
    known = f"<br>other runs of this name: {escape(', '.join(map(short, others)))}" if others else ""
    cards = [
        (share_of(whole.goodput, 1), "goodput"),
        (duration(whole.elapsed_s), "elapsed"),
        (str(whole.disruptions), "disruption" if whole.disruptions == 1 else "disruptions"),
        ("-" if whole.max_step is None else f"{whole.max_step:,}", "highest step done"),
        (duration(report.steps.ideal_s), "ideal step"),
    ]
    left_out = f"<br>{excluded(report)}" if report.cumulative.excluded_s else ""
    warning = f'<p class="alarm">{escape(alarm(report))}</p>' if alarm(report) else ""
    return (
        f'<h1>{escape(title(report))} <span class="soft">{escape(run_of(report))}</span></h1>'
        f'<div class="soft"><span class="place">{escape(report.name)}</span><br>{period}{left_out}{start}{known}</div>'
        f"{warning}"
        '<div class="hero">'
        + "".join(f"<div><b>{escape(text)}</b>{name}</div>" for text, name in cards)
        + "</div>"
        + _divided(whole)
    )


def title(report: GoodputReport) -> str:
    """Return the name of the job, else the last part of the log's name."""
    return report.job or names([report])[0] or "goodput"


def _divided(breakdown: TimeBreakdown) -> str:
    """Return a bar with the shares of the buckets."""
    parts = "".join(
        f'<i class="{_classes(bucket)}" style="{_colours(bucket)};flex:{seconds:.6f}" '
        f'title="{escape(name)}: {duration(seconds)}, {percent(seconds / breakdown.elapsed_s)} %"></i>'
        for bucket, name, seconds in _shares(breakdown)
    )
    return (
        f'<div class="whole" role="img" aria-label="{percent(breakdown.goodput, 1)} per cent productive">{parts}</div>'
    )


def _timeline(report: GoodputReport, number: int, windows: Sequence[str]) -> str:
    shown = windows[: len(windows) - min(CLOSE_UPS, len(report.disruptions))]
    chips = "".join(f"<button>{escape(name)}</button>" for name in shown)
    return (
        f'<h2>Timeline, one lane per attempt</h2><figure data-run="{number}"><div class="chips">{chips}'
        '<span class="soft">drag to zoom in, double-click to reset</span></div>'
        '<div class="lanes"><svg tabindex="0" role="img" aria-label="Timeline of the attempts; use the arrow keys '
        'to move"></svg></div><div class="tip" hidden></div><div class="soft" aria-live="polite"></div></figure>'
        "<noscript>The timeline needs JavaScript; the tables below have the same numbers.</noscript>"
    )


def _partition(breakdown: TimeBreakdown) -> str:
    rows = [
        [_swatch(bucket) + escape(name), duration(seconds), percent(seconds / breakdown.elapsed_s)]
        for bucket, name, seconds in _shares(breakdown)
    ]
    rows.append(["elapsed", duration(breakdown.elapsed_s), "100.00"])
    if breakdown.excluded_s:
        rows.append(["excluded", duration(breakdown.excluded_s), ""])
    if breakdown.data_loading_async_s:
        rows.append([label("DATA_LOADING_ASYNC"), duration(breakdown.data_loading_async_s), "overlay"])
    return "<h2>Where the time went</h2>" + _table(["", "time", "%"], rows, numbers={1, 2}, raw={0})


def _figures(report: GoodputReport) -> str:
    return "<h2>Reliability and cost</h2>" + _table(["", ""], [list(figure) for figure in figures(report)])


def _disruptions(report: GoodputReport, number: int, windows: Sequence[str]) -> str:
    disruptions = report.disruptions
    before = len(disruptions) - min(CLOSE_UPS, len(disruptions))
    rows = []
    for ordinal, each in enumerate(disruptions[before:], start=before + 1):
        total = each.recovery.total_s or 1.0
        parts = "".join(
            f'<i style="width:{seconds / total * 100:.2f}%" title="{name} {duration(seconds)}"></i>'
            for name, seconds in phases(each.recovery)
        )
        phases_text = ", ".join(f"{name} {duration(seconds)}" for name, seconds in phases(each.recovery) if seconds)
        window = list(windows).index(f"#{ordinal}")
        rows.append(
            [
                f'<button data-run="{number}" data-window="{window}">#{ordinal}</button>',
                moment(each.lost),
                escape(each.cause),
                f"{each.steps_lost:,}",
                duration(each.wasted_s),
                duration(each.recovery.total_s),
                f'<div class="phases">{parts}</div><span class="soft">{phases_text}</span>',
            ]
        )
    heads = ["", "lost at (UTC)", "cause", "steps lost", "wasted", "recovery", "by phase"]
    more = f'<div class="soft">… and {before} earlier</div>' if before else ""
    return "<h2>Disruptions</h2>" + _table(heads, rows, numbers={3, 4, 5}, raw=set(range(7))) + more


def _stretches(report: GoodputReport) -> str:
    named = [("since resume", report.since_resume)] if report.disruptions else []
    named += [(f"last {duration(window.window_s)}", window) for window in report.windows]
    named += [
        (f"attempt #{each.number}, steps {each.first_step} to {each.last_step}", each.stretch)
        for each in report.attempts[-CLOSE_UPS:]
        if each.first_step is not None and len(report.attempts) > 1
    ]
    rows = [
        [name, duration(breakdown.elapsed_s), percent(breakdown.goodput), _divided(breakdown)]
        for name, breakdown in named
    ]
    heads = ["", "elapsed", "goodput %", ""]
    return "<h2>Windows and attempts</h2>" + _table(heads, rows, numbers={1, 2}, raw={3})


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: set[int] | None = None, raw: set[int] | None = None
) -> str:
    """Return a table; `numbers` are right-aligned columns, `raw` are columns of HTML."""

    def cell(tag: str, column: int, text: str) -> str:
        content = text if tag == "td" and column in (raw or ()) else escape(text)
        return f"<{tag}{' class=n' if column in (numbers or ()) else ''}>{content}</{tag}>"

    def row(tag: str, texts: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(tag, column, text) for column, text in enumerate(texts))}</tr>"

    head = row("th", heads) if any(heads) else ""
    return f'<div class="scroll"><table>{head}{"".join(row("td", texts) for texts in rows)}</table></div>'


def _shares(breakdown: TimeBreakdown) -> Iterator[tuple[str, str, float]]:
    if breakdown.productive_s:
        yield PRODUCTIVE, "productive", breakdown.productive_s
    for bucket, seconds in breakdown.unproductive_s.items():
        yield bucket, label(bucket), seconds


def _swatch(bucket: str) -> str:
    return f'<i class="swatch {_classes(bucket)}" style="{_colours(bucket)}"></i>'


def _classes(bucket: str) -> str:
    return "paint hatched" if paint(bucket).hatched else "paint"


def _colours(bucket: str) -> str:
    return f"--light:{paint(bucket).light};--dark:{paint(bucket).dark}"
