"""The job that diagnoses one session in the cluster.

It stores files beside the traces, and prints `diagnosis.json` on standard output.
"""

from __future__ import annotations

import json
import sys

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.store import open_store

from mldiagnostics_diagnosis.sessions import diagnose_session


def run(log_directory: str, session: str) -> int:
    """Diagnose a session and print the result as one line of JSON.

    Return 1 if there is none, or if it is not stored: nobody else reads what it prints.
    """
    try:
        result = diagnose_session(open_store(log_directory), session)
    except MLDiagnosticsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(result.diagnosis.to_json()) + "\n")
    if result.unstored:
        sys.stdout.flush()
        sys.stderr.write(f"{result.unstored}\n")  # the last line, which Kubernetes shows
        return 1
    return 0
