"""The table of all scenarios: one row each, then the problems in words."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from chaos.accounting import DENIED, NOT_INJECTED, Observed, spread

COLUMNS = (
    "scenario",
    "capture s",
    "report ms",
    "blocked ms",
    "frozen s",
    "verdicts",
    "lost",
    "doubled",
    "stuck",
    "wrong",
    "denied",
    "not injected",
)
LONGEST = 400
TEXTS = ("scenario", "verdicts", "")
MORE_COLUMNS = ("OOM", "restarts", "operator", "webhook", "")
HEADINGS = (*COLUMNS, *MORE_COLUMNS)


def show(console: Console, rows: Mapping[str, Observed]) -> None:
    """Print the table and every problem.

    Captures and reports are those of the victims: median, 95th percentile and maximum. Memory is the highest share of
    the limit.
    """
    table = Table(box=SIMPLE_HEAD)
    for column in HEADINGS:
        table.add_column(column, no_wrap=column != "verdicts", justify="left" if column in TEXTS else "right")
    for name, seen in rows.items():
        table.add_row(*row(name, seen), style="red" if seen.problems() else None)
    console.print(table)
    for name, seen in rows.items():
        for problem in seen.problems():
            console.print(f"{name}: {problem[:LONGEST]}", style="red", highlight=False, markup=False)
        for warning in seen.warnings():
            console.print(f"{name}: {warning}", style="yellow", highlight=False, markup=False)


def row(name: str, seen: Observed) -> list[str]:
    """Return the cells of one scenario."""
    verdicts = sorted({each.verdict or "-" for each in seen.captures})
    counts = (len(seen.lost), len(seen.doubled), len(seen.stuck), len(seen.wrong), seen.admissions[DENIED])
    created = seen.admissions.total()
    return [
        name,
        spread([each.seconds for each in seen.victims], 1),
        spread(seen.reports_ms, 0),
        *(f"{value:.0f}" if seen.reports_ms else "-" for value in (seen.blocked_ms, seen.frozen_s)),
        ", ".join(verdicts),
        *map(str, counts),
        f"{seen.admissions[NOT_INJECTED]}/{created}",
        str(seen.oom_kills),
        str(len(seen.exits)),
        *(f"{seen.memory.get(part, 0):.0%}" for part in ("operator", "webhook")),
        "FAILED" if seen.problems() else "ok",
    ]
