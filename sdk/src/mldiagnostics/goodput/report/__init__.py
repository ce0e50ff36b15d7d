"""Everything that one event log says about a job, as one typed object and as JSON."""

from __future__ import annotations

from mldiagnostics.goodput.report.jsonable import as_json, from_json
from mldiagnostics.goodput.report.making import make_report
from mldiagnostics.goodput.report.model import (
    AttemptReport,
    Checkpoints,
    DisruptionReport,
    Failures,
    Hang,
    LostWork,
    Phases,
    Queueing,
    Report,
    Steps,
    Stretch,
)

__all__ = [
    "AttemptReport",
    "Checkpoints",
    "DisruptionReport",
    "Failures",
    "Hang",
    "LostWork",
    "Phases",
    "Queueing",
    "Report",
    "Steps",
    "Stretch",
    "as_json",
    "from_json",
    "make_report",
]
