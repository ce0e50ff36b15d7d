"""Names and labels of the objects of runs."""

import hashlib
import re
from typing import Final

from mldiagnostics.identity import RUN_LABEL_CHARACTERS

_HEX: Final = re.compile(r"[0-9a-f]{64}")
_WORKLOAD_CHARACTERS: Final = 40
_ID_CHARACTERS: Final = 10
_REPORTED_CHARACTERS: Final = 16


def run_name(workload: str, run_id: str) -> str:
    """Return the name of the MLRun of a workload, the same in every process.

    Args:
        workload: Name of the workload.
        run_id: Id of the run.
    """
    return f"{workload[:_WORKLOAD_CHARACTERS].rstrip('-.')}-{_digits(run_id)[:_ID_CHARACTERS]}"


def reported_run_name(run_id: str) -> str:
    """Return the name of the MLRun of a run that only its reports show."""
    return f"r-{_digits(run_id)[:_REPORTED_CHARACTERS]}"


def run_label(run_id: str) -> str:
    """Return the value of the label `diagon.gke.io/run`, also for chosen ids."""
    return _digits(run_id)[:RUN_LABEL_CHARACTERS]


def _digits(run_id: str) -> str:
    """Return 64 hex digits.

    Chosen ids may be alike at their start, or illegal as part of a name.
    """
    return run_id if _HEX.fullmatch(run_id) else hashlib.sha256(run_id.encode()).hexdigest()
