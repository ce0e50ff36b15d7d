"""The goodput report of a job, as a typed object and as JSON."""

from __future__ import annotations

from mldiagnostics.goodput.report.build import make_report
from mldiagnostics.goodput.report.jsonable import as_json, from_json
from mldiagnostics.goodput.report.model import (
    AttemptReport,
    CheckpointStats,
    DisruptionReport,
    FailureStats,
    GoodputReport,
    Hang,
    LostWork,
    Queueing,
    RecoveryPhases,
    StepStats,
    TimeBreakdown,
)

__all__ = [
    "AttemptReport",
    "CheckpointStats",
    "DisruptionReport",
    "FailureStats",
    "GoodputReport",
    "Hang",
    "LostWork",
    "Queueing",
    "RecoveryPhases",
    "StepStats",
    "TimeBreakdown",
    "as_json",
    "from_json",
    "make_report",
]
