"""run.json: what is known of a run, written whole by the process that speaks for it.

`v`, `runId`, `name`, `runGroup`, `phase`, `reason`, `message`, `created`, `started`, `ended`, `heartbeat {t,
intervalSeconds}`, `attempt`, `incarnation`, `attempts`, `identity {source, workload}`, `process {node, podUid, slice,
hostIndex}` (of the process that writes it), `worldSize`, `storage`, `sinks`, `kinds`, `configs {software, hardware,
user}`, `progress {step, t, stepTimeSeconds}`, `drops`, `complaints`, `versions`, and what parts of the SDK publish,
such as `profiling`. All times are Unix seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mldiagnostics.complaints import complain
from mldiagnostics.errors import MLDiagnosticsError, NotStored
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.run.judgement import TERMINATING
from mldiagnostics.strict_json import dumps

if TYPE_CHECKING:
    from mldiagnostics.store import Store

SCHEMA_VERSION = 1
MAX_ATTEMPTS = 100
"""How many earlier attempts are remembered."""

_OF_AN_ATTEMPT = ("attempt", "incarnation", "started", "ended", "phase", "reason", "message")


def continued(document: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `document` with the history in the run.json that `earlier` attempts left; pure.

    The run was created when its first attempt was. An attempt that was not ended by itself was lost.
    """
    if not earlier or earlier.get("runId") != document["runId"]:
        return {**document, "attempts": []}
    attempts, heartbeat = earlier.get("attempts"), earlier.get("heartbeat")
    history = [item for item in attempts if isinstance(item, Mapping)] if isinstance(attempts, list) else []
    if earlier.get("incarnation") != document["incarnation"]:
        past = {key: earlier.get(key) for key in _OF_AN_ATTEMPT}
        if past["phase"] not in ["Completed", "Failed"]:
            beaten = heartbeat.get("t") if isinstance(heartbeat, Mapping) else None
            reason = "Terminated" if past["reason"] == TERMINATING else "Lost"
            past |= {"phase": "Failed", "reason": reason, "ended": beaten}
        history.append(past)
    created = earlier.get("created")
    created = created if isinstance(created, int | float) else document["created"]
    return {**document, "created": min(created, document["created"]), "attempts": history[-MAX_ATTEMPTS:]}


class Manifest:
    """Keeps the run.json of `run_id` below `storage`; used by one thread."""

    def __init__(self, storage: str, run_id: str) -> None:
        self._storage = storage
        self._key = f"{run_id}/{RUN_RECORD}"
        self._store: Store | None = None
        self._earlier: Mapping[str, Any] | None = None

    def write(self, document: Mapping[str, Any]) -> bool:
        """Write the document with the history of earlier attempts; false, with a complaint, if that failed."""
        try:
            if self._store is None:
                self._store = self._opened()
            text = dumps(continued(document, self._earlier), indent=1)
            self._store.put(self._key, f"{text}\n".encode(), replace=True)
        except (MLDiagnosticsError, OSError) as error:
            complain("run-record", f"run.json cannot be written, the run goes on without it for now: {error}")
            return False
        return True

    def _opened(self) -> Store:
        from mldiagnostics.store import open_store  # noqa: PLC0415 - not loaded before it is used

        store = open_store(self._storage)
        try:
            with store.open(self._key) as file:
                found = json.load(file)
            self._earlier = found if isinstance(found, Mapping) else None
        except NotStored:
            pass
        except ValueError as error:  # what is broken is replaced; what cannot be reached is tried again
            complain("run-record-earlier", f"the run.json of an earlier attempt is broken and is replaced: {error}")
        return store
