"""Runs: training or serving jobs, from `machinelearning_run` to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mldiagnostics.configs.kinds import (
    AcceleratorOrchestrator,
    ApplicationFramework,
    Framework,
    Orchestrator,
    RlOrchestrator,
    RunPhase,
    ServingEngine,
)
from mldiagnostics.lazy_names import lazy_names
from mldiagnostics.lifecycle import current_run
from mldiagnostics.run.config_dict import ConfigDict

if TYPE_CHECKING:
    from mldiagnostics.run.arguments import normalize_gcs_path
    from mldiagnostics.run.mlrun import MLRun
    from mldiagnostics.run.start import machinelearning_run

__all__ = [
    "AcceleratorOrchestrator",
    "ApplicationFramework",
    "ConfigDict",
    "Framework",
    "MLRun",
    "Orchestrator",
    "RlOrchestrator",
    "RunPhase",
    "ServingEngine",
    "current",
    "machinelearning_run",
    "normalize_gcs_path",
]

_HOMES = {
    "MLRun": "mldiagnostics.run.mlrun",
    "machinelearning_run": "mldiagnostics.run.start",
    "normalize_gcs_path": "mldiagnostics.run.arguments",
}
"""Name -> module that has it, loaded at first use."""


def current() -> MLRun | None:
    """Return the run of this process, None before its start and after its end."""
    return cast("MLRun | None", current_run.current())


__getattr__, __dir__ = lazy_names(globals(), _HOMES)
