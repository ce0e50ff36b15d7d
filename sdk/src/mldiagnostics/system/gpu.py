"""NVIDIA GPUs of the host, through their driver.

`gpu_utilization` and `vram_utilization` come from every driver. `gpu_duty_cycle` and `gpu_tensorcore_utilization` are
counted by the device itself from Hopper on ("GPM metrics", docs.nvidia.com/deploy/nvml-api); older ones have none.
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
_COUNTED = {
    MetricType.GPU_DUTY_CYCLE: "NVML_GPM_METRIC_GRAPHICS_UTIL",
    MetricType.GPU_TENSORCORE_UTILIZATION: "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
}


def gpus() -> GpuMetrics | None:
    """Return the GPUs of this host; None if there are none, or no driver. Raises `MissingExtraError`."""
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
        self._before = [self._sample(handle) for handle in handles]

    def read(self) -> list[SystemSample]:
        """Return series with one number per device, in percent; NaN for a device that does not answer."""
        nvml = self._nvml
        series = {
            MetricType.GPU_UTILIZATION: self._each(lambda handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            MetricType.VRAM_UTILIZATION: self._each(lambda handle: _filled(nvml.nvmlDeviceGetMemoryInfo(handle))),
            **self._counted(),
        }
        return [
            SystemSample(metric, tuple(values), _LABELS)
            for metric, values in series.items()
            if not all(math.isnan(value) for value in values)
        ]

    def _counted(self) -> dict[MetricType, list[float]]:
        """Compare the devices' counters with those of the last reading."""
        found: dict[MetricType, list[float]] = {metric: [] for metric in _COUNTED}
        for index, handle in enumerate(self._handles):
            before, now = self._before[index], self._sample(handle)
            self._before[index] = now
            values = self._between(before, now)
            for metric, value in zip(_COUNTED, values, strict=True):
                found[metric].append(value)
            if before is not None:
                self._nvml.nvmlGpmSampleFree(before)
        return found

    def _between(self, before: Any, now: Any) -> list[float]:
        if before is None or now is None:
            return [math.nan] * len(_COUNTED)
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(_COUNTED)
        asked.sample1, asked.sample2 = before, now
        for slot, name in enumerate(_COUNTED.values()):
            asked.metrics[slot].metricId = getattr(nvml, name)
        try:
            nvml.nvmlGpmMetricsGet(asked)
        except nvml.NVMLError:
            return [math.nan] * len(_COUNTED)
        answers = asked.metrics[: len(_COUNTED)]
        return [float(answer.value) if answer.nvmlReturn == 0 else math.nan for answer in answers]

    def _sample(self, handle: Any) -> Any:
        """Take a sample of the device's counters; None where it has none, or this driver does not give them."""
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

    def _each(self, question: Callable[[Any], float]) -> list[float]:
        return [self._answer(question, handle) for handle in self._handles]

    def _answer(self, question: Callable[[Any], float], handle: Any) -> float:
        try:
            return float(question(handle))
        except self._nvml.NVMLError:
            return math.nan


def _filled(memory: Any) -> float:
    return 100 * memory.used / memory.total if memory.total else math.nan
