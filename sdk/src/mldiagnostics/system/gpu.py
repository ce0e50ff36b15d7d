"""NVIDIA GPUs of the host, through their driver.

`gpu_utilization` and `vram_utilization` exist for every device. `gpu_duty_cycle` and `gpu_tensorcore_utilization` are
"GPM metrics" (docs.nvidia.com/deploy/nvml-api), which devices have since Hopper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mldiagnostics.metric_types import MetricType
from mldiagnostics.system.nvml import driver
from mldiagnostics.system.source import SystemSample

if TYPE_CHECKING:
    from collections.abc import Callable

_LABELS = {"accelerator_type": "gpu"}
_GPM_METRICS = {
    MetricType.GPU_DUTY_CYCLE: "NVML_GPM_METRIC_GRAPHICS_UTIL",
    MetricType.GPU_TENSORCORE_UTILIZATION: "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
}


def gpus() -> GpuMetrics | None:
    """Return the GPUs of this host; None without a GPU or driver.

    Raises `MissingExtraError` if there is a driver and the extra `gpu` is not installed.
    """
    if (nvml := driver()) is None:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        return None
    return GpuMetrics(nvml, handles) if handles else None


class GpuMetrics:
    """All devices of the host, in the driver's order."""

    name = "gpu"

    def __init__(self, nvml: Any, handles: list[Any]) -> None:
        self._nvml = nvml
        self._handles = handles
        self._last = [self._sample(handle) for handle in handles]

    def read(self) -> list[SystemSample]:
        """Return series with one value per device, in percent; NaN if a device fails."""
        nvml = self._nvml
        series = {
            MetricType.GPU_UTILIZATION: self._each(lambda handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            MetricType.VRAM_UTILIZATION: self._each(lambda handle: _percent_used(nvml.nvmlDeviceGetMemoryInfo(handle))),
            **self._gpm(),
        }
        return [
            SystemSample(metric, tuple(values), _LABELS)
            for metric, values in series.items()
            if not all(math.isnan(value) for value in values)
        ]

    def _gpm(self) -> dict[MetricType, list[float]]:
        """Return the GPM metrics since the last reading."""
        series: dict[MetricType, list[float]] = {metric: [] for metric in _GPM_METRICS}
        for index, handle in enumerate(self._handles):
            last, now = self._last[index], self._sample(handle)
            self._last[index] = now
            values = self._between(last, now)
            for metric, value in zip(_GPM_METRICS, values, strict=True):
                series[metric].append(value)
            if last is not None:
                self._nvml.nvmlGpmSampleFree(last)
        return series

    def _between(self, last: Any, now: Any) -> list[float]:
        if last is None or now is None:
            return [math.nan] * len(_GPM_METRICS)
        nvml = self._nvml
        query = nvml.c_nvmlGpmMetricsGet_t()
        query.version = nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(_GPM_METRICS)
        query.sample1, query.sample2 = last, now
        for slot, name in enumerate(_GPM_METRICS.values()):
            query.metrics[slot].metricId = getattr(nvml, name)
        try:
            nvml.nvmlGpmMetricsGet(query)
        except nvml.NVMLError:
            return [math.nan] * len(_GPM_METRICS)
        results = query.metrics[: len(_GPM_METRICS)]
        return [float(result.value) if result.nvmlReturn == 0 else math.nan for result in results]

    def _sample(self, handle: Any) -> Any:
        """Sample the device's GPM counters; None if device or driver has none."""
        nvml = self._nvml
        sample = None
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                return None
            sample = nvml.nvmlGpmSampleAlloc()
            nvml.nvmlGpmSampleGet(handle, sample)
        except (nvml.NVMLError, AttributeError):
            if sample is not None:
                nvml.nvmlGpmSampleFree(sample)
            return None
        return sample

    def _each(self, read: Callable[[Any], float]) -> list[float]:
        return [self._value(read, handle) for handle in self._handles]

    def _value(self, read: Callable[[Any], float], handle: Any) -> float:
        try:
            return float(read(handle))
        except self._nvml.NVMLError:
            return math.nan


def _percent_used(memory: Any) -> float:
    return 100 * memory.used / memory.total if memory.total else math.nan
