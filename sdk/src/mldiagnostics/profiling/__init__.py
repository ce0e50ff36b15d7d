"""Profiles in the training process: programmatic ones and on-demand captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.lazy_names import lazy_names

if TYPE_CHECKING:
    from mldiagnostics.profiling.on_demand import start_on_demand_xprof, stop_on_demand_xprof
    from mldiagnostics.profiling.xprof import Xprof

__all__ = ["Xprof", "start_on_demand_xprof", "stop_on_demand_xprof"]

_MODULES = {
    "Xprof": "mldiagnostics.profiling.xprof",
    "start_on_demand_xprof": "mldiagnostics.profiling.on_demand",
    "stop_on_demand_xprof": "mldiagnostics.profiling.on_demand",
}
"""Public name -> module, imported on first use, so that other modules of the package load without it."""

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
