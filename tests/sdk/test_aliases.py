"""Names of other packages, against the list of what their users import."""

from __future__ import annotations

from importlib import import_module

import pytest
from mldiagnostics.aliases import ALIASES, GOOGLE_SDK

IMPORTED = {
    "": ["machinelearning_run", "metrics", "xprof", "metric_types"],
    "api.metrics": ["record", "record_metrics"],
    "api.mlrun": ["machinelearning_run"],
    "commands.run_vllm": ["main"],
    "core.global_manager": [
        *("get_current_run", "get_current_run_id", "get_logging_client", "get_last_updated_run", "register_run"),
        "initialize_with_mlrun",
    ],
    "core.metrics": ["record"],
    "core.xprof": ["Xprof", "start_on_demand_xprof", "stop_on_demand_xprof"],
    "custom_types.exceptions": [
        *("MLDiagnosticError", "MLRunConfigurationError", "RecordingError", "NoActiveRunError", "ProfilingError"),
        "ControlPlaneClientNotInitializedError",
    ],
    "custom_types.metric_types": ["MetricType", "METRIC_UNITS", "AcceleratorType"],
    "custom_types.mlrun_types": [
        *("RunPhase", "Framework", "ServingEngine", "AcceleratorOrchestrator", "ApplicationFramework"),
        *("RlOrchestrator", "Orchestrator", "MLRun", "ConfigDict"),
    ],
}


def test_every_path_has_its_names_listed() -> None:
    assert set(ALIASES[GOOGLE_SDK]) == set(IMPORTED)


@pytest.mark.parametrize("path", IMPORTED)
def test_every_name_is_there(path: str) -> None:
    module = import_module(ALIASES[GOOGLE_SDK][path])
    assert [name for name in IMPORTED[path] if not hasattr(module, name)] == []
