"""`xprofiler register`: makes a log directory a run."""

from __future__ import annotations

import json
import time

from mldiagnostics.errors import AlreadyStored, ConfigurationError
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.store import open_store


def register(log_directory: str, *, name: str, group: str, project: str, region: str) -> str:
    """Write the record of a completed run into a log directory without one.

    Args:
        log_directory: Path or URL; its last part becomes the id of the run.
        name: Name of the run.
        group: Group of the run.
        project: Project of the peer's service, kept as the place of the run.
        region: Region of it.

    Returns:
        The root of the runs, for `mldiag runs list --storage`.

    Raises:
        ConfigurationError: The directory is a whole bucket, or has another run.
        StoreError: The directory cannot be written.
    """
    directory = log_directory.rstrip("/")
    root, _, run_id = directory.rpartition("/")
    if not run_id or root.endswith(("/", ":")):
        raise ConfigurationError(f"--log-directory {log_directory}: not a directory of a run; pass gs://bucket/run")
    now = time.time()
    record = {
        "runId": run_id,
        "name": name,
        "runGroup": group,
        "phase": "Completed",
        "reason": "Registered",
        "created": now,
        "started": now,
        "ended": now,
        "identity": {
            "workload": {"kind": "Project", "name": project, "cluster": f"projects/{project}/locations/{region}"}
        },
    }
    try:
        open_store(root or "/").put(f"{run_id}/{RUN_RECORD}", json.dumps(record).encode())
    except AlreadyStored as error:
        raise ConfigurationError(f"{directory}: is a run already; `mldiag runs get {directory}` shows it") from error
    return root or "/"
