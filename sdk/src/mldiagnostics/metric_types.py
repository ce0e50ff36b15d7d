"""Names and units of common metrics; other names have the unit `1`."""

from __future__ import annotations

from enum import Enum


class MetricType(str, Enum):
    """Names of common metrics; each member equals its string value.

    Example:
        >>> from mldiagnostics import MetricType, metrics
        >>> metrics.record(MetricType.LOSS, 0.5, step=1)
    """

    LEARNING_RATE = "learning_rate"
    """Learning rate of the optimiser."""
    LOSS = "loss"
    """Training loss."""
    GRADIENT_NORM = "gradient_norm"
    """Norm of the gradients."""
    TOTAL_WEIGHTS = "total_weights"
    """Sum of the weights of a batch's examples or tokens."""
    STEP_TIME = "step_time"
    """Duration of one step."""
    THROUGHPUT = "throughput"
    """Examples or tokens per second."""
    LATENCY = "latency"
    """Duration of one request."""
    MFU = "mfu"
    """Model FLOPS utilisation."""
    TFLOPS = "tflops"
    """Floating-point operations per second and device."""
    STEP = "step"
    """Number of the step."""
    TPU_DUTY_CYCLE = "tpu_duty_cycle"
    """System metric: share of time that each TPU was busy."""
    TPU_TENSORCORE_UTILIZATION = "tpu_tensorcore_utilization"
    """System metric: utilisation of each TPU's TensorCore."""
    HBM_UTILIZATION = "hbm_utilization"
    """System metric: share of each TPU's memory that is in use."""
    GPU_DUTY_CYCLE = "gpu_duty_cycle"
    """System metric: share of time that each GPU's engines were busy."""
    GPU_UTILIZATION = "gpu_utilization"
    """System metric: share of time that a kernel ran on each GPU."""
    GPU_TENSORCORE_UTILIZATION = "gpu_tensorcore_utilization"
    """System metric: utilisation of each GPU's tensor cores."""
    VRAM_UTILIZATION = "vram_utilization"
    """System metric: share of each GPU's memory that is in use."""
    HOST_CPU_UTILIZATION = "host_cpu_utilization"
    """System metric: share of the CPUs of the container's limit, else of the machine, that is in use."""
    HOST_MEMORY_UTILIZATION = "host_memory_utilization"
    """System metric: share of the memory of the container's limit, else of the machine, that is in use."""


class AcceleratorType(str, Enum):
    """Kind of accelerator."""

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
"""Units of the metrics of `mldiagnostics.goodput`, except plain numbers."""

UNITS: dict[str, str] = {**{metric.value: unit for metric, unit in METRIC_UNITS.items()}, **GOODPUT_UNITS}
"""Units of all metrics by plain name."""
