"""Files of runs, written directly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.records import Record, encode

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store

START_S = 1_790_000_000.0
"""First second of a large run."""


def put_run(store: Store, run: str, **changes: Any) -> None:
    """Write the run.json of a completed run, with changes."""
    document = {"v": 1, "runId": run, "name": f"name of {run}", "phase": "Completed", "created": 1.0, **changes}
    store.put(f"{run}/run.json", json.dumps(document).encode(), replace=True)


def put_records(store: Store, run: str, file: str, *records: Record, torn: bytes = b"") -> None:
    """Write one file of records."""
    store.put(f"{run}/records/{file}.jsonl", "".join(map(encode, records)).encode() + torn)


def write_large_run(records: Path, process: str, *, metrics: int, steps: range, file_steps: int) -> None:
    """Write files of a process that records `metrics` values at each step, as the SDK writes them.

    The value of metric `n` at step `s` is `s + n / 1000`, at the second `START_S + s / 10`. A heartbeat follows each
    100 steps.
    """
    line = encode(Record("metric", 0.5, "NAME", 0.25, 77, unit="1")).replace("77", "%d").replace("0.5", "%.1f")
    parts = [line.replace("NAME", metric_name(at)).replace("0.25", f"%d.{at:03d}") for at in range(metrics)]
    text = "".join(parts)
    records.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(steps.start, steps.stop, file_steps), start=1):
        with (records / f"{process}-{number:05d}.jsonl").open("w", buffering=1 << 20) as file:
            for step in range(first, min(steps.stop, first + file_steps)):
                t = START_S + step / 10
                file.write(text % ((t, step, step) * metrics))
                if step % 100 == 0:
                    file.write(encode(Record("heartbeat", t, "alive", step=step, payload={"intervalSeconds": 10})))


def metric_name(at: int) -> str:
    """Return the name of a metric of a large run."""
    return f"layer_{at:03d}/norm"
