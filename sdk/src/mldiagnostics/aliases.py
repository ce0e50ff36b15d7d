"""Where the modules of other packages that integrators import have their counterparts here; pure."""

from __future__ import annotations

from types import MappingProxyType

GOOGLE_SDK = "google_cloud_mldiagnostics"
GOODPUT = "ml_goodput_measurement"

_GOODPUT_MODULES = (
    "checkpoint_badput_calculator",
    "gcp_metrics",
    "goodput",
    "goodput_cache",
    "goodput_elastic",
    "goodput_utils",
    "monitoring",
    "monitoring_elastic",
)

ALIASES = MappingProxyType(
    {
        GOOGLE_SDK: MappingProxyType(
            {
                "": "mldiagnostics",
                "_version": "mldiagnostics._version",
                "api.metrics": "mldiagnostics.metrics",
                "api.mlrun": "mldiagnostics.run",
                "commands.collect_profile": "mldiagnostics.collect_profile",
                "commands.run_vllm": "mldiagnostics.run_vllm",
                "core.global_manager": "mldiagnostics.run.global_manager",
                "core.metrics": "mldiagnostics.metrics",
                "core.xprof": "mldiagnostics.profiling",
                "custom_types.exceptions": "mldiagnostics.errors",
                "custom_types.metric_types": "mldiagnostics.metric_types",
                "custom_types.mlrun_types": "mldiagnostics.run",
            }
        ),
        GOODPUT: MappingProxyType(
            {
                **{name: f"mldiagnostics.{name}" for name in _GOODPUT_MODULES},
                **{f"src.{name}": f"mldiagnostics.{name}" for name in _GOODPUT_MODULES},
                "src.exclusion_utils": "mldiagnostics.goodput.exclusion",
                "src.goodput_exclusion": "mldiagnostics.goodput.exclusion",
            }
        ),
    }
)
"""Import name -> path below it (empty: itself) -> our module with the same names."""
