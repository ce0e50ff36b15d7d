"""Import paths of other packages and earlier versions, with their modules; pure."""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["ALIASES", "GOODPUT", "GOOGLE_SDK", "OLD_FOLDERS", "OLD_PATHS"]

GOOGLE_SDK = "google_cloud_mldiagnostics"
GOODPUT = "ml_goodput_measurement"

_GOODPUT_MODULES = {
    "checkpoint_badput_calculator": "mldiagnostics.compat.checkpoint_badput_calculator",
    "gcp_metrics": "mldiagnostics.goodput.exports.gcp_metrics",
    "goodput": "mldiagnostics.goodput",
    "goodput_cache": "mldiagnostics.compat.goodput_cache",
    "goodput_elastic": "mldiagnostics.compat.goodput_elastic",
    "goodput_utils": "mldiagnostics.compat.goodput_utils",
    "monitoring": "mldiagnostics.compat.monitoring",
    "monitoring_elastic": "mldiagnostics.compat.monitoring_elastic",
}

_GOOGLE_MODULES = {
    "": "mldiagnostics",
    "_version": "mldiagnostics.compat._version",
    "api.metrics": "mldiagnostics.metrics",
    "api.mlrun": "mldiagnostics.run",
    "clients.logging_client": "mldiagnostics.compat.logging_client",
    "commands.collect_profile": "mldiagnostics.compat.collect_profile",
    "commands.run_vllm": "mldiagnostics.compat.run_vllm",
    "core.global_manager": "mldiagnostics.compat.global_manager",
    "core.metrics": "mldiagnostics.metrics",
    "core.xprof": "mldiagnostics.profiling",
    "custom_types.exceptions": "mldiagnostics.errors",
    "custom_types.metric_types": "mldiagnostics.metric_types",
    "custom_types.mlrun_types": "mldiagnostics.run",
    "exporters.base_exporter": "mldiagnostics.compat.base_exporter",
    "utils.host_utils": "mldiagnostics.compat.host_utils",
}

ALIASES = MappingProxyType(
    {
        GOOGLE_SDK: MappingProxyType(_GOOGLE_MODULES),
        GOODPUT: MappingProxyType(
            {
                **_GOODPUT_MODULES,
                **{f"src.{name}": module for name, module in _GOODPUT_MODULES.items()},
                "src.exclusion_utils": "mldiagnostics.goodput.queries.exclusion",
                "src.goodput_exclusion": "mldiagnostics.goodput.queries.exclusion",
            }
        ),
    }
)
"""Package -> path below it (empty: the package itself) -> module with the same names."""

OLD_PATHS = MappingProxyType(
    {
        **{f"mldiagnostics.{name}": module for name, module in _GOODPUT_MODULES.items() if name != "goodput"},
        "mldiagnostics._version": "mldiagnostics.compat._version",
        **{f"mldiagnostics.{path}": module for path, module in _GOOGLE_MODULES.items() if "." in path},
        "mldiagnostics.aliases": "mldiagnostics.compat.aliases",
        "mldiagnostics.collect_profile": "mldiagnostics.compat.collect_profile",
        "mldiagnostics.run.global_manager": "mldiagnostics.compat.global_manager",
        "mldiagnostics.run_vllm": "mldiagnostics.compat.run_vllm",
    }
)
"""Path that programs import -> module that it leads to."""

OLD_FOLDERS = frozenset(f"mldiagnostics.{path.partition('.')[0]}" for path in _GOOGLE_MODULES if "." in path)
"""Packages that only contain such paths: `mldiagnostics.core`, …"""
