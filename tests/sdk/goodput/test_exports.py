"""Exports of a monitor: the translations for each destination, and the destinations."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from array import array
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_port
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.diagnostics import counts
from mldiagnostics.goodput.account import Account, Bucket, StepTimes
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.exports import metrics as ours
from mldiagnostics.goodput.exports.export import Export
from mldiagnostics.goodput.exports.observe import (
    CumulativeObservation,
    ExportedSteps,
    RollingObservation,
    StepDeviations,
    WindowObservation,
    observe_steps,
    percent,
)
from mldiagnostics.goodput.exports.selection import open_exports
from mldiagnostics.goodput.exports.tensorboard import curves, without_badput
from mldiagnostics.goodput.exports.workload import PREFIX, series
from mldiagnostics.goodput.monitor.assignment import Assignment
from mldiagnostics.metric_types import GOODPUT_UNITS
from mldiagnostics.sinks import BatchPolicy
from support.programs import environments
from support.records import DEADLINE_S, ListSink, eventually, origin, records_in
from support.servers.receivers import collector
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if TYPE_CHECKING:
    from mldiagnostics.goodput.report.view import RunView

SECOND = 1_000_000
T = 1_790_000_000 * SECOND
NO_CLOUD = {"enable_gcp_goodput_metrics": False, "enable_gcp_step_deviation_metrics": False}
EVAL = Bucket(BadputType.CUSTOM_BADPUT_EVENTS, "EVAL")
ACCOUNT = Account(
    start=T,
    end=T + 100 * SECOND,
    elapsed=100 * SECOND,
    excluded=0,
    productive=60 * SECOND,
    unproductive={
        Bucket(BadputType.TPU_INITIALIZATION): 25 * SECOND,
        EVAL: 10 * SECOND,
        Bucket(BadputType.OTHER): 5 * SECOND,
    },
    overlay=7 * SECOND,
    disruptions=2,
    max_step=41,
    last_step=42,
)
DASHBOARD = Path(__file__).parents[3] / "examples/monitoring/cloud_monitoring_goodput.json"
SEEN = CumulativeObservation(T + 100 * SECOND, ACCOUNT, 2 * SECOND, SECOND // 4, (0.5, 1.0))
WINDOW = replace(ACCOUNT, unproductive={Bucket(BadputType.OTHER): 40 * SECOND})
ROLLING = RollingObservation(SEEN.at, (WindowObservation(3600, WINDOW, (EVAL,), (0.25, 0.75)),))
STEPS = StepDeviations(SEEN.at, [3, 4], [SECOND, 2 * SECOND], SECOND // 2)

BASE = {
    "TPU_INITIALIZATION",
    "TRAINING_PREP",
    "PROGRAM_STARTUP",
    "DATA_LOADING_SYNC",
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME",
    "WASTED_PROGRESS_FROM_DISRUPTION",
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
    "OTHER",
}


def assignment(log: Path, tensorboard: str = "", *, badput: bool = False, exports: tuple[str, ...] = ()) -> Assignment:
    return Assignment("job", "logger", str(log), tensorboard, badput=badput, exports=exports, gcp=NO_CLOUD)


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Step and value of every scalar, by tag, as TensorBoard finds them."""
    accumulator: Any = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(each.step, round(each.value, 4)) for each in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def test_curves_have_the_peers_tags() -> None:
    points = {point.name: (point.value, point.step) for point in curves(SEEN)}
    expected = dict.fromkeys((f"badput/{name.lower()}" for name in BASE), (0.0, 41))
    assert points == expected | {
        "goodput/goodput": (60.0, 41),
        "badput/tpu_initialization": (25.0, 41),
        "badput/custom_badput_events/eval": (10.0, 41),
        "badput/other": (5.0, 41),
        "badput/data_loading_async": (7.0, 41),
    }
    assert [point.name for point in without_badput(SEEN)] == ["goodput/goodput"]
    assert [(point.name, point.value, point.step) for point in curves(STEPS)] == [
        ("step_deviation", 1.0, 3),
        ("step_deviation", 2.0, 4),
    ]
    assert not list(curves(ROLLING))


def test_series_have_the_peers_names_and_labels() -> None:
    exported = [(point.name, point.labels, point.value) for point in series(SEEN)]
    badput = {labels["badput_source"]: value for name, labels, value in exported if name == "badput_time"}
    assert badput == dict.fromkeys(BASE, 0.0) | {
        "TPU_INITIALIZATION": 25.0,
        "CUSTOM_BADPUT_EVENTS.EVAL": 10.0,
        "OTHER": 5.0,
    }
    efficiency = {"window_type": "CUMULATIVE", "rolling_window_size": "0"}
    assert [each for each in exported if each[0] != "badput_time"] == [
        ("goodput_time", {"goodput_source": "TOTAL"}, 60.0),
        ("disruptions", {"window_type": "cumulative"}, 2),
        ("max_productive_steps", {}, 41),
        ("total_elapsed_time", {"window_type": "cumulative"}, 100.0),
        ("step_time_deviation", {}, 0.25),
        ("performance", {}, 2.0),
        ("stepping_slice_efficiency", efficiency, 0.5),
        ("available_slice_efficiency", efficiency, 1.0),
    ]


def test_the_dashboard_of_cloud_monitoring_asks_for_series_that_exist() -> None:
    labels: dict[str, set[str]] = {}
    for observation in (SEEN, ROLLING):
        for point in series(observation):
            labels.setdefault(f"{PREFIX}{point.name}", {"accelerator_type"}).update(point.labels)
    queries = re.findall(
        r'"filter": "metric.type=\\"([^"\\]+)\\" resource.type=\\"([^"\\]+)\\""', DASHBOARD.read_text()
    )
    assert {resource for _, resource in queries} == {"compute.googleapis.com/Workload"}
    assert {metric for metric, _ in queries} <= labels.keys()
    for widget in (tile["widget"] for tile in json.loads(DASHBOARD.read_text())["mosaicLayout"]["tiles"]):
        text = json.dumps(widget)
        [*names] = {name for name, _ in re.findall(r'metric.type=\\"([^"\\]+)\\"( )', text)}
        used = {*re.findall(r'metric\.label\.\\"(\w+)\\"', text), *re.findall(r"metric\.labels\.(\w+)", text)}
        assert all(used <= labels[name] for name in names), widget["title"]


def test_the_dashboard_of_cloud_monitoring_is_valid_for_its_client() -> None:
    program = (
        "import sys; from google.cloud.monitoring_dashboard_v1 import Dashboard\n"
        "shown = Dashboard.from_json(open(sys.argv[1]).read(), ignore_unknown_fields=False)\n"
        "print(shown.display_name, len(shown.mosaic_layout.tiles))"
    )
    command = [environments.interpreter("dashboards"), "-c", program, DASHBOARD]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S)
    assert shown.stdout.split() == ["mldiagnostics:", "goodput", "12"]


def test_series_of_windows_have_empty_buckets_too() -> None:
    exported = [(point.name, dict(point.labels), point.value) for point in series(ROLLING)]
    size = {"rolling_window_size": "3600"}
    assert ("interval_goodput", {"goodput_source": "TOTAL", **size}, 60.0) in exported
    assert ("interval_badput", {"badput_source": "OTHER", **size}, 40.0) in exported
    assert ("interval_badput", {"badput_source": "CUSTOM_BADPUT_EVENTS.EVAL", **size}, 0.0) in exported
    assert ("stepping_slice_efficiency", {"window_type": "INTERVAL", **size}, 0.25) in exported


def test_a_window_outside_the_run_is_not_exported() -> None:
    empty = replace(WINDOW, elapsed=0, productive=0, unproductive={})
    assert not list(series(RollingObservation(T, (WindowObservation(60, empty, (), None),))))


def test_series_are_of_goodput_of_deviations_or_of_both() -> None:
    assert not list(series(SEEN, goodput=False))
    assert not list(series(ROLLING, goodput=False))
    assert not list(series(STEPS, deviations=False))
    assert [(point.name, point.value) for point in series(STEPS, goodput=False)] == [("step_time_deviation", 0.5)]


def test_all_metrics_are_in_the_reference_and_have_units() -> None:
    reference = {metric.name: set(metric.labels) for metric in ours.METRICS}
    exported = [point for seen in (SEEN, ROLLING, STEPS) for point in ours.metrics(seen)]
    assert {point.name: set(point.labels) for point in exported} == reference
    assert {name for name in reference if name.endswith(("_seconds", "_percent"))} == set(GOODPUT_UNITS)


@given(
    st.sampled_from([0, 8190, 16_384]),
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.integers(0, 3), max_size=12),
)
def test_each_step_time_is_exported_once_and_again_only_if_it_changed(
    same: int, old_end: list[int], new_end: list[int]
) -> None:
    old, new = [1] * same + old_end, [1] * same + new_end
    exported = ExportedSteps(StepTimes(array("i", range(len(old))), array("q", old)))
    after = StepTimes(array("i", range(len(new))), array("q", new))
    seen = observe_steps(_steps(after), T, exported=exported, ideal=0)
    common = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    assert list(seen.steps) == list(range(common, len(new)))
    assert list(seen.deviations) == new[common:]
    again = observe_steps(_steps(after), T, exported=exported, ideal=0)
    assert list(again.steps) == []


def test_no_deviations_are_exported_without_an_ideal() -> None:
    assert observe_steps(_steps(StepTimes()), T, exported=ExportedSteps()) == StepDeviations(T, (), (), None)


def test_percent_of_no_time_is_0() -> None:
    assert percent(0, replace(ACCOUNT, elapsed=0)) == 0.0


class _Steps:
    def __init__(self, times: StepTimes) -> None:
        self.times = times

    def step_times(self, _: int) -> StepTimes:
        return self.times

    def ideal_step_time(self, _: int) -> int | None:
        return None


def _steps(times: StepTimes) -> RunView:
    view: Any = _Steps(times)
    return view  # type: ignore[no-any-return]


def test_tensorboard_shows_the_observations(tmp_path: Path) -> None:
    exports = open_exports(assignment(tmp_path / "log", str(tmp_path / "tb"), badput=True))
    exports.write(SEEN)
    exports.write(STEPS)
    assert exports.flush(DEADLINE_S)
    shown = read(tmp_path / "tb/goodput")
    assert shown["goodput/goodput"] == [(41, 60.0)]
    assert shown["badput/custom_badput_events/eval"] == [(41, 10.0)]
    assert shown["step_deviation"] == [(3, 1.0), (4, 2.0)]
    exports.close(DEADLINE_S)


def test_tensorboard_reads_it_from_a_bucket(gcs_bucket: str, tmp_path: Path) -> None:
    from mldiagnostics.store import open_store

    exports = open_exports(assignment(tmp_path, f"gs://{gcs_bucket}/tb"))
    exports.write(SEEN)
    assert exports.flush(DEADLINE_S)
    exports.close(DEADLINE_S)
    [entry] = open_store(f"gs://{gcs_bucket}").list()
    assert entry.key.startswith("tb/goodput/events.out.tfevents.")
    with open_store(f"gs://{gcs_bucket}").open(entry.key) as file:
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / entry.key.rpartition("/")[2]).write_bytes(file.read())
    assert read(tmp_path / "copy") == {"goodput/goodput": [(41, 60.0)]}


def test_a_history_longer_than_the_buffer_is_exported_whole() -> None:
    steps = range(140_000)
    sink = ListSink(batch_policy=BatchPolicy(records=10_000))
    export = Export(origin(), curves, [sink.maker])
    export.write(StepDeviations(T, steps, [SECOND] * len(steps), None))
    export.close(DEADLINE_S)
    assert [record.step for record in sink.taken] == list(steps)


def test_files_of_records_get_metrics_and_whole_reports(tmp_path: Path) -> None:
    exports = open_exports(assignment(tmp_path / "log", exports=("jsonl:",)))
    exports.write(SEEN)
    assert exports.wants_reports
    exports.report(SEEN.at, {"v": 1, "cumulative": {"goodput": 0.6}})
    exports.close(DEADLINE_S)
    records = records_in(tmp_path / "log/reports")
    assert [(each.value, each.unit, each.step, each.t) for each in records if each.name == "goodput_percent"] == [
        (60.0, "%", 42, SEEN.at / 1e6)
    ]
    [_, report] = records_in(tmp_path / "log/reports", kind="event")
    assert (report.name, report.payload) == ("goodput_report", {"v": 1, "cumulative": {"goodput": 0.6}})


def test_prometheus_scrapes_it(tmp_path: Path) -> None:
    port = free_port()
    exports = open_exports(assignment(tmp_path, exports=(f"prometheus:127.0.0.1:{port}",)))
    exports.write(SEEN)
    exports.write(ROLLING)
    assert exports.flush(DEADLINE_S)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
        lines = answer.read().decode().splitlines()
    assert "ml_goodput_percent 60.0" in lines
    assert 'ml_badput_seconds{source="CUSTOM_BADPUT_EVENTS.EVAL"} 10.0' in lines
    assert 'ml_goodput_window_percent{window="3600"} 60.0' in lines
    exports.close(DEADLINE_S)


def test_an_opentelemetry_collector_gets_it(tmp_path: Path) -> None:
    with collector() as receiver:
        receiver.start()
        exports = open_exports(assignment(tmp_path, exports=(f"otlp:127.0.0.1:{receiver.grpc_port}",)))
        exports.write(SEEN)
        assert exports.flush(DEADLINE_S)
        exports.close(DEADLINE_S)
        points = {
            (name, attributes.get("source", "")): (value, unit)
            for name, value, _, attributes, unit in receiver.points()
        }
    assert points["goodput_percent", ""] == (60.0, "%")
    assert points["badput_seconds", "OTHER"] == (5.0, "s")


def test_a_destination_that_is_down_does_not_affect_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    exports = open_exports(assignment(tmp_path, str(tmp_path / "file"), exports=(f"jsonl:{tmp_path / 'out'}",)))
    exports.write(SEEN)
    eventually(lambda: len(records_in(tmp_path / "out")) > 10, "the lines are there")
    assert not exports.flush(1.0)
    exports.close(1.0)


@pytest.mark.parametrize("url", ["nonsense:x", "stdout:"])
def test_an_invalid_destination_is_skipped(url: str, tmp_path: Path) -> None:
    before = counts().get(f"goodput-export {url}", 0)
    exports = open_exports(assignment(tmp_path, exports=(url,)))
    assert counts()[f"goodput-export {url}"] == before + 1
    assert not exports.wants_reports
    exports.write(SEEN)
    assert exports.flush(1.0)
    exports.close(1.0)
