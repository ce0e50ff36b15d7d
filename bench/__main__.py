"""Measures the figures of docs/benchmarks.md and rewrites it: `python -m bench [NAME…]`."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from support.suite.bytecode import keep_bytecode

from bench.table import FILE, Section, keep

BENCHES = {
    "capture": "capture_fanout",
    "cli": "command_line",
    "control-plane": "control_plane",
    "diagnosis": "diagnosis_speed",
    "diagnosis-accuracy": "diagnosis_accuracy",
    "everything": "sdk_everything",
    "fleet": "fleet_reports",
    "goodput": "goodput_accounts",
    "hot-path": "sdk_hot_path",
    "mlruns": "run_objects",
    "monitor": "goodput_monitor",
    "operator": "operator_load",
    "pulses": "pulses",
    "reporting": "sdk_reporting",
    "runs": "runs_read",
    "schedules": "schedules",
    "sdk": "sdk_records",
    "store": "store_requests",
    "trace": "trace_export",
    "view": "view_page",
    "webhook": "webhook_reviews",
}
"""Modules with a `measure`; imported after `quiet`, because their libraries may print at import."""


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"{', '.join(unknown)}: no such bench; choose from {', '.join(BENCHES)}")
        return 2
    keep_bytecode(os.environ)  # an installed package has its bytecode
    with quiet():
        _measure(names or [*BENCHES])
    return 0


@contextmanager
def quiet() -> Iterator[None]:
    """Send the output of libraries and child processes to a file; only `print` reaches the terminal.

    The file is kept, and named, if the bench fails.
    """
    terminal = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.NamedTemporaryFile(prefix="bench-", suffix=".log", delete=False) as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    sys.stdout = terminal
    try:
        yield
    except BaseException:
        print(f"failed; the traceback and the output of libraries are in {log.name}")
        raise
    Path(log.name).unlink()


def _measure(names: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160)
    for name in names:
        section: Section = import_module(f"bench.{BENCHES[name]}").measure()
        table = Table(*section.columns, title=section.title)
        for row in section.rows:
            table.add_row(*row)
        console.print(table, section.notes)
        keep(section)
    console.print(f"written to {FILE}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
