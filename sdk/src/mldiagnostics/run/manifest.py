"""Write run.json, the description of a run, from the run's leading process.

`v`, `runId`, `name`, `runGroup`, `tags`, `notes`, `phase`, `reason`, `message`, `created`, `started`, `ended`,
`heartbeat {t, intervalSeconds}`, `attempt`, `incarnation`, `attempts`, `identity {source, workload}`, `process {node,
podUid, slice, hostIndex}` (of the process that writes it), `worldSize`, `storage`, `sinks`, `kinds`, `configs
{software, hardware, user}`, `progress {step, t, stepTimeSeconds}`, `drops`, `complaints`, `versions`, and sections of
other parts of the SDK, such as `profiling`. All times are Unix seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import MLDiagnosticsError, NotStored
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.lifecycle.history import continued
from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.spool.storage import RunStorage
    from mldiagnostics.store import Store

SCHEMA_VERSION = 1


class Manifest:
    """Writes the run.json of a run to the storage that `storage()` returns.

    Used by one thread.
    """

    def __init__(self, storage: Callable[[], RunStorage], run_id: str) -> None:
        self._storage = storage
        self._key = f"{run_id}/{RUN_RECORD}"
        self._has_read = False
        self._earlier: Mapping[str, Any] | None = None

    def write(self, document: Mapping[str, Any]) -> bool:
        """Write the document with the history of earlier attempts.

        Return whether it is stored.

        A document that the storage does not take is spooled, or dropped with a warning.
        """
        try:
            return (
                not self._storage()
                .store(self._key, lambda: self._text(document), lambda store: self._put(store, document))
                .spooled
            )
        except (MLDiagnosticsError, OSError) as error:
            warn_once("run-record", f"run.json cannot be written and is retried with the next heartbeat: {error}")
            return False

    def _put(self, store: Store, document: Mapping[str, Any]) -> str:
        if not self._has_read:
            self._storage().upload_waiting(self._key)
            self._read(store)
        return store.put(self._key, self._text(document), replace=True).url

    def _text(self, document: Mapping[str, Any]) -> bytes:
        return f"{dumps(continued(document, self._earlier), indent=1)}\n".encode()

    def _read(self, store: Store) -> None:
        try:
            with store.open(self._key) as file:
                document = json.load(file)
            self._earlier = document if isinstance(document, Mapping) else None
        except NotStored:
            pass
        except ValueError as error:  # a broken document is replaced, an unreachable one is retried
            warn_once("run-record-earlier", f"the earlier run.json is not valid JSON and is replaced: {error}")
        self._has_read = True
