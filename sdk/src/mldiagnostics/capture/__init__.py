"""On-demand profiles of running processes, on all hosts at once.

Independent of Kubernetes.

    from mldiagnostics.capture import capture
    report = capture(["10.0.0.7:9999", "10.0.0.8:9999"], duration_ms=1000, storage="gs://bucket/profiles")

`capture` and `run` need the extra `capture`; the value types need no dependencies.
"""

from typing import TYPE_CHECKING

from mldiagnostics.capture.model import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    Recording,
    ServerProbe,
    Target,
    TargetState,
    Tracers,
    TraceSink,
    Verify,
)
from mldiagnostics.lazy_names import lazy_names

if TYPE_CHECKING:
    from mldiagnostics.capture.api import capture
    from mldiagnostics.capture.budget import ByteBudget
    from mldiagnostics.capture.engine import run
    from mldiagnostics.capture.report import CaptureReport

__all__ = [
    "ByteBudget",
    "CaptureReport",
    "Control",
    "Delivery",
    "Options",
    "Outcome",
    "Reason",
    "Recording",
    "ServerProbe",
    "Target",
    "TargetState",
    "TraceSink",
    "Tracers",
    "Verify",
    "capture",
    "run",
]

_LAZY = {"ByteBudget": "budget", "CaptureReport": "report", "capture": "api", "run": "engine"}
"""Loaded on first access, because most of it needs grpc."""

__getattr__, __dir__ = lazy_names(globals(), {name: f"{__name__}.{module}" for name, module in _LAZY.items()})
