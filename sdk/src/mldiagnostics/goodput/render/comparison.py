"""Several reports as a table for a terminal, one column per run; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.render.words import duration, label, moment, percent, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mldiagnostics.goodput.report import GoodputReport


NAME_WIDTH = 32
NARROWEST, WIDEST = 12, 24
"""Width of a column."""


def rows(reports: Sequence[GoodputReport]) -> Iterator[tuple[str, list[str]]]:
    """Yield each figure's name and texts per run; a name without texts is a heading."""

    def each(text_of: Callable[[GoodputReport], str]) -> list[str]:
        return [text_of(report) for report in reports]

    yield "state", each(_state)
    yield "started (UTC)", each(lambda report: moment(report.started)[5:16])
    yield "elapsed", each(lambda report: duration(report.cumulative.elapsed_s))
    if any(report.cumulative.excluded_s for report in reports):
        yield "  excluded", each(lambda report: duration(report.cumulative.excluded_s))
    yield "goodput %", each(lambda report: percent(report.cumulative.goodput))
    yield "  since resume %", each(lambda report: percent(report.since_resume.goodput))
    windows = [{window.window_s: percent(window.goodput) for window in report.windows} for report in reports]
    for length in dict.fromkeys(length for shares in windows for length in shares):
        yield f"  last {duration(length)} %", [shares.get(length, "-") for shares in windows]
    yield "share of the time, %", []
    for bucket in _buckets(reports):
        yield f"  {label(bucket)}", each(lambda report, bucket=bucket: _share(report, bucket))  # type: ignore[misc]
    yield "disruptions", each(lambda report: str(report.cumulative.disruptions))
    yield "MTTF", each(lambda report: duration(report.failures.mttf_s))
    yield "MTTR", each(lambda report: duration(report.failures.recovery.total_s if report.failures.recovery else None))
    yield "lost work", each(lambda report: duration(report.lost_work.total_s))
    if any(report.devices for report in reports):
        yield "  device-hours", each(_device_hours)
    yield "ideal step", each(lambda report: duration(report.steps.ideal_s))
    yield "steps done", each(lambda report: f"{report.steps.done or report.steps.count:,}")


def comparison_table(reports: Sequence[GoodputReport], *, width: int = 80) -> str:
    """Return the reports in lines of at most `width` characters, 24 at least.

    Runs that do not fit are in further tables.
    """
    name_width = max(NARROWEST, min(NAME_WIDTH, width - NARROWEST))
    fit = max(1, (width - name_width) // NARROWEST)
    column = max(NARROWEST, min(WIDEST, (width - name_width) // min(fit, len(reports))))
    heads = names(reports)
    tables = [
        "\n".join(_lines(reports[first : first + fit], heads[first : first + fit], name_width, column))
        for first in range(0, len(reports), fit)
    ]
    return "\n\n".join(tables) + "\n"


def names(reports: Sequence[GoodputReport]) -> list[str]:
    """Return a short unique name for each report: the run, or the log name's end."""
    parts = [report.name.removesuffix(".jsonl").rstrip("/").split("/") for report in reports]
    logs = len(set(map(tuple, parts)))
    if logs == 1 and len(reports) > 1:
        return [short(report.run) for report in reports]
    longer = (["/".join(each[-count:]) for each in parts] for count in range(1, max(map(len, parts)) + 1))
    tails = next(tails for tails in longer if len(set(tails)) == logs)
    repeated = {tail for tail in tails if tails.count(tail) > 1}
    named = zip(tails, reports, strict=True)
    return [f"{short(tail)} {short(report.run)}" if tail in repeated else short(tail) for tail, report in named]


def _lines(reports: Sequence[GoodputReport], heads: Sequence[str], name_width: int, column: int) -> Iterator[str]:
    yield " " * name_width + "".join(f"{_tail(head, column - 1):>{column}}" for head in heads)
    for name, texts in rows(reports):
        yield (f"{name[:name_width]:{name_width}}" + "".join(f"{text:>{column}}" for text in texts)).rstrip()


def _state(report: GoodputReport) -> str:
    if report.ended is not None:
        return "ended"
    if report.stopped:
        return "STOPPED"
    if report.hang.suspected:
        return "HANG?"
    if report.disruptions and report.disruptions[-1].resumed is None:
        return "NOT BACK"
    return "no step" if report.cumulative.last_step is None else "running"


def _device_hours(report: GoodputReport) -> str:
    hours = report.lost_work.device_hours
    return "-" if hours is None else f"{hours:,.1f}"


def _buckets(reports: Sequence[GoodputReport]) -> list[str]:
    spent: dict[str, float] = {}
    for report in reports:
        for bucket, seconds in report.cumulative.unproductive_s.items():
            spent[bucket] = spent.get(bucket, 0.0) + seconds
    return sorted(spent, key=lambda bucket: -spent[bucket])


def _share(report: GoodputReport, bucket: str) -> str:
    seconds, elapsed_s = report.cumulative.unproductive_s.get(bucket), report.cumulative.elapsed_s
    return percent(seconds / elapsed_s) if seconds and elapsed_s else "-"


def _tail(text: str, width: int) -> str:
    """Return the end of a text: names of runs differ there."""
    return text if len(text) <= width else "…" + text[1 - width :]
