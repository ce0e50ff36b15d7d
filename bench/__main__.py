"""Measures what the documentation promises: `python -m bench [NAME…]`, rewrites docs/benchmarks.md."""

import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from bench import capture_fanout, goodput_accounts, goodput_monitor, operator_load, sdk_records, webhook_reviews
from bench.table import FILE, Section, keep

BENCHES: dict[str, Callable[[], Section]] = {
    "capture": capture_fanout.measure,
    "goodput": goodput_accounts.measure,
    "monitor": goodput_monitor.measure,
    "operator": operator_load.measure,
    "sdk": sdk_records.measure,
    "webhook": webhook_reviews.measure,
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
        return 2
    console = Console(width=None if sys.stdout.isatty() else 160)
    for name in names or BENCHES:
        section = BENCHES[name]()
        table = Table(*section.columns, title=section.title)
        for row in section.rows:
            table.add_row(*row)
        console.print(table, section.notes)
        keep(section)
    console.print(f"written to {FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
