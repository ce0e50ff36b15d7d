"""Writes one large run with a peer's own library: `view_clients.py CLIENT FOLDER RUN`.

RUN is JSON with the names of the metrics, the number of steps, and the second of the first step. It runs with the
interpreter of the peer's environment, so it only imports that peer.
"""

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

BATCH = 5000
"""Steps in one transaction of trackio."""


def write_trackio(folder: Path, names: Sequence[str], steps: int, start_s: float) -> None:
    """Write the project `large` with the function that imports and remote clients call."""
    os.environ["TRACKIO_DIR"] = str(folder)
    from trackio.sqlite_storage import SQLiteStorage  # type: ignore[import-not-found]

    for first in range(0, steps, BATCH):
        batch = range(first, min(steps, first + BATCH))
        values = [{name: step + at / 1000 for at, name in enumerate(names)} for step in batch]
        times = [datetime.fromtimestamp(start_s + step / 10, UTC).isoformat() for step in batch]
        SQLiteStorage.bulk_log("large", "large", values, list(batch), times)


def write_aim(folder: Path, names: Sequence[str], steps: int, start_s: float) -> None:
    """Write each column of a metric as one batch of aim's storage, a quarter of the time of `Run.track`.

    `track` writes the same keys one by one, after a deletion of each. It is called for the first and the last step,
    because it also keeps what the page shows of a metric without its points.
    """
    from aim import Run  # type: ignore[import-not-found]
    from aim.storage.context import Context  # type: ignore[import-not-found]
    from aim.storage.hashing import hash_auto  # type: ignore[import-not-found]

    run = Run(repo=str(folder), system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
    for step in (0, steps - 1):
        run.track({name: step + at / 1000 for at, name in enumerate(names)}, step=step)
    keys = [hash_auto(step) for step in range(steps)]
    shared = {"epoch": [None] * steps, "step": range(steps), "time": [start_s + step / 10 for step in range(steps)]}
    version_of_numbers = 2
    for at, name in enumerate(names):
        metric = run.series_run_trees[version_of_numbers].subtree((Context({}).idx, name))
        for column, values in {**shared, "val": [step + at / 1000 for step in range(steps)]}.items():
            metric.set((column,), dict(zip(keys, values, strict=True)))
            metric.array(column).allocate()
    run.close()


WRITERS = {"aim": write_aim, "trackio": write_trackio}

if __name__ == "__main__":
    WRITERS[sys.argv[1]](Path(sys.argv[2]), **json.loads(sys.argv[3]))
