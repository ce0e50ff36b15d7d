"""Files of runs, written directly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.records import Record, encode

if TYPE_CHECKING:
    from mldiagnostics.store import Store


def put_run(store: Store, run: str, **changes: Any) -> None:
    """Write the run.json of a completed run, with changes."""
    document = {"v": 1, "runId": run, "name": f"name of {run}", "phase": "Completed", "created": 1.0, **changes}
    store.put(f"{run}/run.json", json.dumps(document).encode(), replace=True)


def put_records(store: Store, run: str, file: str, *records: Record, torn: bytes = b"") -> None:
    """Write one file of records."""
    store.put(f"{run}/records/{file}.jsonl", "".join(map(encode, records)).encode() + torn)
