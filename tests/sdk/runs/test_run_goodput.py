"""Goodput of real runs, as the goodput package computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import LogUnreadable
from mldiagnostics.runs import goodput, goodput_over_time, run_at, with_goodput
from mldiagnostics.store import open_store
from support.programs.processes import Programs
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import time
from mldiagnostics import machinelearning_run
with machinelearning_run("job", log_system_metrics=False) as run:
    for step in range(4):
        run.step(step)
        time.sleep(0.1)
"""


def test_the_report_of_a_run(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM).code == 0
    row = programs.the_run()
    report = goodput(row)
    assert report is not None
    assert (report.cumulative.last_step, report.ended is not None) == (3, True)
    assert with_goodput(row).goodput == report.cumulative.goodput
    assert report.cumulative.goodput is not None
    assert 0 < report.cumulative.goodput <= 1
    read = goodput_over_time(row, parts=7)
    assert read is not None
    whole, parts = read[0].cumulative, read[1]
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert sum(part.productive_s for part in parts) == pytest.approx(whole.productive_s, abs=1e-5)
    for cause, seconds in whole.unproductive_s.items():
        assert sum(part.unproductive_s.get(cause, 0) for part in parts) == pytest.approx(seconds, abs=1e-5)


def test_a_run_without_events_has_no_goodput(tmp_path: Path) -> None:
    assert goodput(str(tmp_path / "nothing")) is None
    records = tmp_path / "run/records"
    records.mkdir(parents=True)
    (records / "a0-r0-aaaaaaaa-00001.jsonl").write_text(
        '{"v":1,"kind":"metric","t":1.0,"name":"loss","rank":0,"attempt":0,"value":1.0}\n'
    )
    assert goodput(str(tmp_path / "run")) is None


def test_records_that_cannot_be_listed_are_an_unreadable_log(tmp_path: Path) -> None:
    put_run(open_store(str(tmp_path)), "abc")
    (tmp_path / "abc/records").symlink_to(tmp_path)
    row = run_at(str(tmp_path / "abc"))
    assert row is not None
    with pytest.raises(LogUnreadable, match="cannot read the goodput log"):
        with_goodput(row, most_bytes=1)
