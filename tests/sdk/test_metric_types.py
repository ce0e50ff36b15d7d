"""Names and units are those of Google's SDK, which dashboards and programs rely on."""

from __future__ import annotations

from mldiagnostics.metric_types import GOODPUT_UNITS, METRIC_UNITS, UNITS, AcceleratorType, MetricType

UNITS_OF_GOOGLE = {
    "1": ["learning_rate", "loss", "gradient_norm", "total_weights", "step"],
    "s": ["step_time", "latency"],
    "1/s": ["throughput"],
    "TFLOPS": ["tflops"],
    "%": [
        "mfu",
        "tpu_duty_cycle",
        "tpu_tensorcore_utilization",
        "hbm_utilization",
        "gpu_duty_cycle",
        "gpu_utilization",
        "gpu_tensorcore_utilization",
        "vram_utilization",
        "host_cpu_utilization",
        "host_memory_utilization",
    ],
}


def test_the_names_and_units_are_googles() -> None:
    expected = {name: unit for unit, names in UNITS_OF_GOOGLE.items() for name in names}
    assert expected | GOODPUT_UNITS == UNITS
    assert {metric.value: unit for metric, unit in METRIC_UNITS.items()} == expected
    assert {metric.name for metric in MetricType} == {name.upper() for name in expected}


def test_a_member_is_its_text() -> None:
    assert MetricType.LOSS == "loss"
    assert METRIC_UNITS["mfu"] == "%"  # type: ignore[index]
    assert [each.value for each in AcceleratorType] == ["tpu", "gpu", "cpu", "unknown"]
