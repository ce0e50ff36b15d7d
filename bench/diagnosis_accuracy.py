"""Accuracy of the diagnosis: faults injected into JAX jobs on CPU, and the verdicts of their captures.

`python -m bench diagnosis-accuracy` writes the table; `python -m bench.diagnosis_accuracy --help` has the options.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.diagnosis_faults import NETWORK, NOTHING, SCENARIOS
from bench.table import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = {
    "SlowHost input": "input", "SlowHost host": "Python", "SlowHost compute": "compute",
    "SlowHost callback": "callback", "SlowHost collection": "GC", "SlowHost compilation": "compile",
    "SlowHost checkpoint": "checkpoint", "SlowHost transfer": "transfer", "SlowHost unknown": "unknown",
    "SeveralSlowHosts": "several", "AlternatingHosts": "alternating", "CommunicationBound": "network",
}  # fmt: skip
"""Columns of the matrix by verdict; others mean that no host is named."""
NO_HOST = "none"


@dataclass(frozen=True)
class Options:
    """Numbers of sessions and of processes."""

    sessions: int = 5
    """With each fault."""
    healthy: int = 100
    hosts: int = 4
    seed: int = 1
    folder: str = ""
    """Keep traces and diagnoses here."""
    only: str = ""
    """One kind of fault."""


def measure(options: Options | None = None) -> Section:
    """Run all sessions and return the confusion matrix."""
    options = options or Options()
    load, start = os.getloadavg()[0], time.monotonic()
    rows = []
    for row in _sessions(options):
        rows.append(row)
        marks = "ok" if row["is_cause_right"] else "host ok" if row["is_host_right"] else "WRONG"
        print(f"... {len(rows)} {row['session']}: {row['verdict']} {marks} ({row['seconds']:.1f} s)", flush=True)
    return _section(rows, options, load=load, minutes=(time.monotonic() - start) / 60)


def _sessions(options: Options) -> Iterator[dict[str, Any]]:
    """Yield the results of the sessions; in a network namespace of its own if this machine allows one."""
    namespace = _namespace()
    kinds = [kind for kind in SCENARIOS if options.only in {"", kind} and (namespace or kind != NETWORK)]
    scenarios = [
        (kind, options.seed + number)
        for number in range(max(options.sessions, options.healthy))
        for kind in kinds
        if number < (options.healthy if kind == NOTHING else options.sessions)
    ]
    arguments: dict[str, Any] = {"hosts": options.hosts, "scenarios": scenarios}
    if options.folder:
        arguments["folder"] = options.folder
    command = [*namespace, sys.executable, "-m", "bench.diagnosis_fleet", json.dumps(arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fleet:
        assert fleet.stdout
        for line in fleet.stdout:
            yield json.loads(line)
    if fleet.returncode:
        raise RuntimeError(f"the fleet ended with code {fleet.returncode}")


def _namespace() -> list[str]:
    """Return the start of a command that runs in a network of its own; empty if this machine has none."""
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if not all(shutil.which(tool) for tool in ("unshare", "ip", "tc")):
        return []
    return command if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0 else []


def _section(rows: Sequence[dict[str, Any]], options: Options, *, load: float, minutes: float) -> Section:
    seen = {COLUMNS.get(row["verdict"], NO_HOST) for row in rows}
    columns = [each for each in (*COLUMNS.values(), NO_HOST) if each in seen]
    kinds = [kind for kind in SCENARIOS if any(row["scenario"] == kind for row in rows)]
    table = []
    for kind in kinds:
        of_kind = [row for row in rows if row["scenario"] == kind]
        counts = Counter(COLUMNS.get(row["verdict"], NO_HOST) for row in of_kind)
        table.append(
            (kind, str(len(of_kind)), *(str(counts[each] or "") for each in columns), *_rights(of_kind, kind=kind))
        )
    faulty = [row for row in rows if row["scenario"] != NOTHING]
    healthy = [row for row in rows if row["scenario"] == NOTHING]
    table.append(("all faults", str(len(faulty)), *("" for _ in columns), *_rights(faulty)))
    table.append(("goal", "", *("" for _ in columns), "≥ 95 %", "≥ 90 %"))
    named = sum(not row["is_host_right"] for row in healthy)
    loads = sorted(row["load"] for row in rows) or [load]
    steps = [row["diagnosis"].get("stepSeconds") or 0.0 for row in healthy] or [0.0]
    return Section(
        name="diagnosis-accuracy",
        title=f"Accuracy of the diagnosis: faults injected into JAX jobs of {options.hosts} processes",
        columns=("injected", "sessions", *columns, "host right", "cause right"),
        rows=table,
        notes=(
            f"Seeds from {options.seed}. In {named} of {len(healthy)} healthy sessions a host was named (goal: none). "
            "A column counts the sessions with this verdict: the first finding about a slow host, else the first one; "
            f"`{NO_HOST}` is any other. A seed chooses hosts, size (10 to 100 % of the healthy step, "
            f"{median(steps) * 1000:.0f} ms), place, names and one of three programs; faults, captures (1.5 to 6 s, "
            f"by the engine of `mldiag capture`), reader and rules are the real ones. {minutes:.0f} minutes on "
            f"{os.cpu_count()} cores, load average {loads[0]:.1f} to {loads[-1]:.1f}, median "
            f"{loads[len(loads) // 2]:.1f}: the job itself is {options.hosts} processes, the rest is other work."
        ),
    )


def _rights(rows: Sequence[dict[str, Any]], *, kind: str = "") -> tuple[str, str]:
    number = len(rows) or 1
    host, cause = (sum(row[key] for row in rows) / number for key in ("is_host_right", "is_cause_right"))
    return f"{host * 100:.0f} %", "" if kind == NOTHING else f"{cause * 100:.0f} %"


def main(arguments: Sequence[str]) -> None:
    """Measure with other options; docs/benchmarks.md stays as it is."""
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis_accuracy")
    for name, default in vars(Options()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    print(measure(Options(**vars(parser.parse_args(arguments)))).markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
