"""The rolling windows of a job have one rule in calculator, report and exports, also after the job."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput import GoodputCalculator, GoodputRecorder
from mldiagnostics.goodput.exports import metrics, workload
from mldiagnostics.goodput.exports.observe import observe_windows

if TYPE_CHECKING:
    from pathlib import Path

START, END = 1_790_000_000.0, 1_790_000_100.0
WINDOW_S = 60
MOMENTS = {"while it runs": END - 30, "at its end": END, "partly after it": END + 30, "after it": END + 3600}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("log")
    recorder = GoodputRecorder("job", "logger", logging_enabled=True, log=place)
    recorder.record_job_start_time(START)
    for step in range(10):
        recorder.record_step_start_time(step, START + 20 + 8 * step)
    recorder.record_job_end_time(END)
    recorder.close()
    return place


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_place_has_the_same_window(log: Path, moment: str) -> None:
    now = MOMENTS[moment]
    calculator = GoodputCalculator("job", "logger", log=log, clock=lambda: now)
    [window] = calculator.report(windows_s=[WINDOW_S]).windows
    view, _ = calculator._queries.view(now)
    observation = observe_windows(view, round(now * 1e6), [WINDOW_S])
    exported = {point.name: point.value for point in metrics.metrics(observation) if "goodput" in point.name}
    series = {point.name: point.value for point in workload.series(observation) if point.name == "interval_goodput"}
    bounds = [datetime.fromtimestamp(each, timezone.utc) for each in (now - WINDOW_S, now)]
    if window.goodput is None:
        assert (moment, exported, series) == ("after it", {}, {})
        with pytest.raises(ValueError, match="no job that ran then"):
            calculator.get_job_goodput_interval(*bounds)
        return
    goodput, _, _, elapsed, _ = calculator.get_job_goodput_interval(*bounds)
    assert window.goodput * 100 == pytest.approx(goodput)
    assert window.elapsed_s == elapsed == min(now, END) - (now - WINDOW_S)
    assert exported["goodput_window_percent"] == pytest.approx(goodput)
    assert series["interval_goodput"] == pytest.approx(goodput)
