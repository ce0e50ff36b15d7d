"""Tables of the demo: runs of pods, hosts of a capture, steps read by XProf."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cluster.paths import REPOSITORY
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from demo import injecting, profiles

XPROF = REPOSITORY / ".venv/bin/xprof"


@dataclass(frozen=True, slots=True)
class Host:
    """One target of a capture; `start_s` is Unix time, None if it was not captured."""

    name: str
    rank: int | None
    node: str
    size: int
    start_s: float | None
    reason: str


def hosts(console: Console, rows: Sequence[Host]) -> None:
    """Print one line per host; skew is the time since the first host's start."""
    table = _table("pod", "rank", "node", "size", "start (UTC)", "skew", "result")
    first = min((row.start_s for row in rows if row.start_s is not None), default=0.0)
    for row in rows:
        started, skew = (
            ("-", "-") if row.start_s is None else (_clock(row.start_s), f"{1000 * (row.start_s - first):.2f} ms")
        )
        rank = "-" if row.rank is None else str(row.rank)
        table.add_row(row.name, rank, row.node, f"{row.size / 1024:.0f} KiB", started, skew, row.reason)
    console.print(table)


def runs(console: Console, pods: Sequence[injecting.InjectedRun]) -> None:
    """Print the run of each pod, and whether the SDK computes the same id from the JobSet."""
    table = _table("pod", "MLDIAG_RUN_ID", "computed by the SDK")
    for each in pods:
        table.add_row(each.pod, each.run, "the same" if each.run == each.computed else each.computed)
    console.print(table)
    console.print(f"Injected by the webhook: {', '.join(pods[0].variables)}\n", style="dim", highlight=False)


def reading(console: Console, log_directory: Path, session: str) -> list[profiles.Steps]:
    """Print the steps that XProf reads from the files of a session, and return them."""
    hosts_steps = profiles.read(profiles.traces(log_directory, session))
    table = _table("host in XProf", "steps", "mean step time")
    for steps in hosts_steps:
        mean = "-" if steps.mean_ms is None else f"{steps.mean_ms:.1f} ms"
        table.add_row(steps.host, str(steps.count), mean)
    console.print(table)
    return hosts_steps


def how_to_open(console: Console, log_directory: Path) -> None:
    """Print the command that opens the profiles in XProf."""
    console.print("To view the profiles, run this and open http://localhost:8791:")
    console.print(f"  {XPROF} --logdir {log_directory} --port 8791\n", style="bold", soft_wrap=True)


def recorded(console: Console, table: str, command: str) -> None:
    """Print the run that the SDK recorded in the training program, and the command that prints it."""
    console.print(f"Run recorded by the training program ({command}):", soft_wrap=True, highlight=False)
    console.print(f"  {table}\n", style="bold", highlight=False, soft_wrap=True)


def goodput(console: Console, account: str, command: str) -> None:
    """Print where the time of the run went, and the command that prints it."""
    console.print(f"Time of the run ({command}):", soft_wrap=True, highlight=False)
    console.print(f"{account}\n", highlight=False, soft_wrap=True, markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _clock(unix_s: float) -> str:
    """Format the time of day with milliseconds."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%H:%M:%S.%f")[:-3]
