"""TPUs of the host, through libtpu's monitoring library.

API: cloud.google.com/tpu/docs/tpu-monitoring-library.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from mldiagnostics.metric_types import MetricType
from mldiagnostics.system.source import SystemSample

if TYPE_CHECKING:
    from collections.abc import Mapping

_LABELS = {"accelerator_type": "tpu"}
_DUTY = "duty_cycle_pct"
_TENSORCORE = "tensorcore_util"
_HBM_USED = "hbm_capacity_usage"
_HBM_TOTAL = "hbm_capacity_total"


def tpus(environ: Mapping[str, str] = os.environ) -> TpuMetrics | None:
    """Return this host's TPUs; None without libtpu or if MLRUN_SKIP_LIBTPU=true."""
    if environ.get("MLRUN_SKIP_LIBTPU", "").lower() == "true" or importlib.util.find_spec("libtpu") is None:
        return None
    try:
        monitoring = importlib.import_module("libtpu.sdk").tpumonitoring
    except (ImportError, AttributeError):  # an older libtpu
        return None
    return TpuMetrics(monitoring)


class TpuMetrics:
    """All chips of the host that are visible to this process, in libtpu's order."""

    name = "tpu"

    def __init__(self, monitoring: Any) -> None:
        self._monitoring = monitoring

    def read(self) -> list[SystemSample]:
        """Return series with one value per chip or core, in percent.

        Empty while the chips are idle.
        """
        used, total = self._series(_HBM_USED), self._series(_HBM_TOTAL)
        hbm = tuple(100 * part / whole for part, whole in zip(used, total, strict=False) if whole)
        series = {
            MetricType.TPU_DUTY_CYCLE: self._series(_DUTY),
            MetricType.TPU_TENSORCORE_UTILIZATION: self._series(_TENSORCORE),
            MetricType.HBM_UTILIZATION: hbm,
        }
        return [SystemSample(metric, values, _LABELS) for metric, values in series.items() if values]

    def _series(self, name: str) -> tuple[float, ...]:
        """Return the values of one metric, () if this version or chip lacks it."""
        try:
            return tuple(float(text) for text in self._monitoring.get_metric(name).data())
        except (RuntimeError, ValueError, TypeError, AttributeError):
            return ()
