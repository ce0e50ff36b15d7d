from mldiagnostics_api.runs.signals import Signal
from mldiagnostics_api.v1alpha1 import RunGoodput
from mldiagnostics_operator.runs.telemetry import MAX_SIGNALS, RaisedSignal, RunMetrics
from prometheus_client import CollectorRegistry


def test_only_the_first_raised_signals_name_their_runs() -> None:
    registry = CollectorRegistry()
    metrics = RunMetrics(registry)
    raised = [RaisedSignal(float(number), "ml", f"run-{number}", Signal.HANGING) for number in range(MAX_SIGNALS + 5)]
    metrics.signals(raised[::-1])
    value = registry.get_sample_value
    assert value("mldiagnostics_runs_signalled", {"signal": "Hanging"}) == MAX_SIGNALS + 5
    assert value("mldiagnostics_runs_signalled", {"signal": "Straggling"}) == 0
    labels = {"run_namespace": "ml", "signal": "Hanging"}
    assert value("mldiagnostics_run_signal", {**labels, "run": f"run-{MAX_SIGNALS - 1}"}) == 1
    assert value("mldiagnostics_run_signal", {**labels, "run": f"run-{MAX_SIGNALS}"}) is None
    metrics.signals([])
    assert value("mldiagnostics_run_signal", {**labels, "run": "run-0"}) is None
    assert value("mldiagnostics_runs_signalled", {"signal": "Hanging"}) == 0


def test_the_time_of_all_runs_is_summed_by_a_fixed_list_of_causes() -> None:
    registry = CollectorRegistry()
    metrics = RunMetrics(registry)
    lost = {"PROGRAM_STARTUP": 5.0, "CUSTOM_BADPUT_EVENTS.EVAL": 2.0, "FROM_THE_FUTURE": 1.0}
    metrics.time([RunGoodput(productive_seconds=10, unproductive_seconds=lost), RunGoodput(productive_seconds=1)])
    family = next(each for each in registry.collect() if each.name == "mldiagnostics_runs_time_seconds")
    seconds = {sample.labels["cause"]: sample.value for sample in family.samples}
    assert {cause: value for cause, value in seconds.items() if value} == {
        "productive": 11,
        "program_startup": 5,
        "custom_badput_events": 2,
        "other": 1,
    }
    metrics.time([])
    assert not any(sample.value for each in registry.collect() if each.name == family.name for sample in each.samples)
