"""Measures the figures of docs/benchmarks.md and rewrites it: `python -m bench [NAME…]`."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.table import FILE, Section, keep

NAMES = ("capture", "goodput", "monitor", "operator", "runs", "sdk", "webhook")


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in NAMES]:
        print(f"{', '.join(unknown)}: no such bench; choose from {', '.join(NAMES)}")
        return 2
    with quiet():
        _measure(names or NAMES)
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
    benches = _benches()
    for name in names:
        section = benches[name]()
        table = Table(*section.columns, title=section.title)
        for row in section.rows:
            table.add_row(*row)
        console.print(table, section.notes)
        keep(section)
    console.print(f"written to {FILE}")


def _benches() -> dict[str, Callable[[], Section]]:
    """Import the benches, whose libraries may write at import, after `quiet`."""
    from bench import (
        capture_fanout,
        goodput_accounts,
        goodput_monitor,
        operator_load,
        runs_read,
        sdk_records,
        webhook_reviews,
    )

    modules = (
        *(capture_fanout, goodput_accounts, goodput_monitor, operator_load),
        *(runs_read, sdk_records, webhook_reviews),
    )
    return {name: module.measure for name, module in zip(NAMES, modules, strict=True)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
