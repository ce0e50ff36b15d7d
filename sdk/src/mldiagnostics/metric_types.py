"""Names and units of metrics that every tool knows; any other name is as good, and its unit is `1`."""

from __future__ import annotations

from enum import Enum


class MetricType(str, Enum):
    """Names with a unit; each equals the text that is its value."""

    LEARNING_RATE = "learning_rate"
    LOSS = "loss"
    GRADIENT_NORM = "gradient_norm"
    TOTAL_WEIGHTS = "total_weights"
    STEP_TIME = "step_time"
    THROUGHPUT = "throughput"
    LATENCY = "latency"
    MFU = "mfu"
    TFLOPS = "tflops"
    STEP = "step"
    TPU_DUTY_CYCLE = "tpu_duty_cycle"
    TPU_TENSORCORE_UTILIZATION = "tpu_tensorcore_utilization"
    HBM_UTILIZATION = "hbm_utilization"
    GPU_DUTY_CYCLE = "gpu_duty_cycle"
    GPU_UTILIZATION = "gpu_utilization"
    GPU_TENSORCORE_UTILIZATION = "gpu_tensorcore_utilization"
    VRAM_UTILIZATION = "vram_utilization"
    HOST_CPU_UTILIZATION = "host_cpu_utilization"
    HOST_MEMORY_UTILIZATION = "host_memory_utilization"


class AcceleratorType(str, Enum):
    """What the training runs on."""

    TPU = "tpu"
    GPU = "gpu"
    CPU = "cpu"
    UNKNOWN = "unknown"


NO_UNIT = "1"
"""The unit of a plain number, as Cloud Monitoring and UCUM write it."""

METRIC_UNITS: dict[MetricType, str] = {
    **dict.fromkeys(MetricType, NO_UNIT),
    MetricType.STEP_TIME: "s",
    MetricType.THROUGHPUT: "1/s",
    MetricType.LATENCY: "s",
    MetricType.MFU: "%",
    MetricType.TFLOPS: "TFLOPS",
    **{metric: "%" for metric in MetricType if metric.value.endswith(("_utilization", "_duty_cycle"))},
}
"""The unit of each known metric."""

GOODPUT_UNITS = {
    "badput_seconds": "s",
    "badput_window_percent": "%",
    "goodput_data_loading_async_seconds": "s",
    "goodput_elapsed_seconds": "s",
    "goodput_ideal_step_seconds": "s",
    "goodput_percent": "%",
    "goodput_productive_seconds": "s",
    "goodput_step_deviation_seconds": "s",
    "goodput_window_percent": "%",
}
"""Units of what `mldiagnostics.goodput` tells of a job, where they are no plain numbers."""

UNITS: dict[str, str] = {**{metric.value: unit for metric, unit in METRIC_UNITS.items()}, **GOODPUT_UNITS}
"""The same by plain name."""
