"""Self-hosted diagnostics for ML workloads, without required third-party packages.

    from mldiagnostics import machinelearning_run, metrics, xprof, metric_types

`machinelearning_run` starts a run, `metrics` records its curves, `xprof` takes its profiles; `mldiagnostics.runs` reads
runs. `goodput` accounts for a job's time and `monitoring` uploads it while the job runs, with the names of
ml-goodput-measurement. `mldiagnostics.capture` takes profiles of running jobs, `mldiagnostics.store` stores files and
`mldiagnostics.identity` computes run ids. All names except the errors load at their first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    ControlPlaneClientNotInitializedError,
    LogMissing,
    LogUnreadable,
    MissingExtraError,
    MLDiagnosticError,
    MLDiagnosticsError,
    MLRunConfigurationError,
    NoActiveRunError,
    NoCredentials,
    NotStored,
    ProfilingError,
    RecordingError,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from mldiagnostics import goodput, metric_types, metrics, runs
    from mldiagnostics.compat import (
        checkpoint_badput_calculator,
        goodput_cache,
        goodput_elastic,
        goodput_utils,
        monitoring,
        monitoring_elastic,
    )
    from mldiagnostics.goodput.exports import gcp_metrics
    from mldiagnostics.metric_types import AcceleratorType, MetricType
    from mldiagnostics.profiling.xprof import xprof
    from mldiagnostics.run import (
        AcceleratorOrchestrator,
        ApplicationFramework,
        Framework,
        MLRun,
        RlOrchestrator,
        RunPhase,
        ServingEngine,
        machinelearning_run,
    )
    from mldiagnostics.store import open_store

    __version__: str

__all__ = [
    "AcceleratorOrchestrator",
    "AcceleratorType",
    "AlreadyStored",
    "ApplicationFramework",
    "ConfigurationError",
    "ControlPlaneClientNotInitializedError",
    "Framework",
    "LogMissing",
    "LogUnreadable",
    "MLDiagnosticError",
    "MLDiagnosticsError",
    "MLRun",
    "MLRunConfigurationError",
    "MetricType",
    "MissingExtraError",
    "NoActiveRunError",
    "NoCredentials",
    "NotStored",
    "ProfilingError",
    "RecordingError",
    "RlOrchestrator",
    "RunPhase",
    "ServingEngine",
    "StoreError",
    "StoreForbidden",
    "StoreFull",
    "StoreNotFound",
    "StoreUnreachable",
    "checkpoint_badput_calculator",
    "gcp_metrics",
    "goodput",
    "goodput_cache",
    "goodput_elastic",
    "goodput_utils",
    "machinelearning_run",
    "metric_types",
    "metrics",
    "monitoring",
    "monitoring_elastic",
    "open_store",
    "runs",
    "xprof",
]

_HOMES = {
    "AcceleratorOrchestrator": "mldiagnostics.run",
    "AcceleratorType": "mldiagnostics.metric_types",
    "ApplicationFramework": "mldiagnostics.run",
    "Framework": "mldiagnostics.run",
    "MLRun": "mldiagnostics.run",
    "MetricType": "mldiagnostics.metric_types",
    "RlOrchestrator": "mldiagnostics.run",
    "RunPhase": "mldiagnostics.run",
    "ServingEngine": "mldiagnostics.run",
    "machinelearning_run": "mldiagnostics.run",
    "open_store": "mldiagnostics.store",
    "xprof": "mldiagnostics.profiling.xprof",
}
"""Name -> module that has it."""

_MODULES = frozenset(
    {
        "checkpoint_badput_calculator",
        "gcp_metrics",
        "goodput",
        "goodput_cache",
        "goodput_elastic",
        "goodput_utils",
        "metric_types",
        "metrics",
        "monitoring",
        "monitoring_elastic",
        "runs",
    }
)


class _OldPathFinder:
    """Finds modules by the import paths of other packages and earlier versions."""

    @staticmethod
    def find_spec(
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG004 - the protocol of importlib
        target: ModuleType | None = None,  # noqa: ARG004
    ) -> ModuleSpec | None:
        """Return the spec of an old path; all other names are left to the other finders."""
        if not fullname.startswith("mldiagnostics."):
            return None
        from mldiagnostics.compat.aliases import OLD_FOLDERS, OLD_PATHS  # noqa: PLC0415 - only for an old path

        if fullname not in OLD_PATHS and fullname not in OLD_FOLDERS:
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 - the same

        if fullname in OLD_FOLDERS:
            return ModuleSpec(fullname, None, is_package=True)
        from mldiagnostics.compat.loader import AliasLoader  # noqa: PLC0415 - the same

        return ModuleSpec(fullname, AliasLoader(OLD_PATHS[fullname]))


sys.meta_path.append(_OldPathFinder)  # last: it is called only for names that no file has


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
