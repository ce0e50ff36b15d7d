"""Where the submodules of `google_cloud_mldiagnostics` that integrators import have their counterparts here; pure."""

from __future__ import annotations

from types import MappingProxyType

PEER = "google_cloud_mldiagnostics"

ALIASES = MappingProxyType(
    {
        "": "mldiagnostics",
        "api.metrics": "mldiagnostics.metrics",
        "api.mlrun": "mldiagnostics.run",
        "commands.run_vllm": "mldiagnostics.run_vllm",
        "core.global_manager": "mldiagnostics.run.global_manager",
        "core.metrics": "mldiagnostics.metrics",
        "core.xprof": "mldiagnostics.profiling",
        "custom_types.exceptions": "mldiagnostics.errors",
        "custom_types.metric_types": "mldiagnostics.metric_types",
        "custom_types.mlrun_types": "mldiagnostics.run",
    }
)
"""Path below `google_cloud_mldiagnostics` (empty: itself) -> our module with the same names."""
