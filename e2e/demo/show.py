"""Tables of the demo: runs of pods, and steps read by XProf."""

from collections.abc import Sequence
from pathlib import Path

from cluster.paths import REPOSITORY
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from demo import injecting, profiles

XPROF = REPOSITORY / ".venv/bin/xprof"


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


def command(console: Console, line: str, output: str) -> None:
    """Print a command and its output."""
    console.print(f"$ {line}", style="bold", soft_wrap=True, highlight=False, markup=False)
    console.print(f"{output.rstrip()}\n", soft_wrap=True, highlight=False, markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
