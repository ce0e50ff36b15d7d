"""Several runs under one name, told apart by their ids, or by where one ended and another started."""

from __future__ import annotations

from array import array

import pytest
from mldiagnostics.goodput.events import EventCode
from mldiagnostics.goodput.history import History
from support.goodput_notation import events, micros, summary


def history(text: str, *, run: str = "", into: History | None = None) -> History:
    found = into or History()
    for event in events(text):
        found.add(event._replace(run=run))
    return found


def test_a_job_start_after_a_recorded_end_begins_another_run() -> None:
    told = history("job@0 0..2@0+10 end@30 job@50 0..4@60+10")
    assert told.runs(micros(200)) == ["1", "2"]
    assert summary(told.of(micros(200), "1").account(micros(200))) == {"ok": 30, "of": 30, "max": 2}
    assert summary(told.of(micros(105)).account(micros(105))) == {"ok": 40, "other": 15, "of": 55, "max": 3}
    assert told.of(micros(200), "2").started == micros(50)


def test_it_is_the_same_run_if_it_goes_on_where_it_had_come_to() -> None:
    told = history("job@0 0..2@0+10 end@30 job@50")
    assert told.runs(micros(55)) == ["1", "2"]
    history("3..4@60+10", into=told)
    assert told.runs(micros(75)) == ["1"]
    assert summary(told.of(micros(75)).account(micros(75)))["recovery"] == 20
    assert told.runs(micros(55)) == ["1", "2"]


def test_an_end_that_comes_late_divides_what_was_one() -> None:
    told = history("job@0 0..2@0+10 job@50 0..4@60+10")
    assert told.runs(micros(200)) == ["1"]
    history("end@30", into=told)
    assert told.runs(micros(200)) == ["1", "2"]
    assert summary(told.of(micros(200), "1").account(micros(200))) == {"ok": 30, "of": 30, "max": 2}


def test_runs_with_ids_are_told_apart_by_them() -> None:
    told = history("job@0 0..2@0+10 end@30 job@50 0@60", run="blue")
    history("job@5 0..2@10+10", run="green", into=told)
    history("job@-9 0..2@-9+1", into=told)
    assert told.runs(micros(70)) == ["1", "blue", "green"]
    assert told.runs(micros(2)) == ["1", "blue"]
    assert told.of(micros(70)).started == micros(5)
    assert told.of(micros(70), "blue").account(micros(70)).disruptions == 1
    with pytest.raises(KeyError, match="run 'red': not in the log; give one of 1, blue, green"):
        told.of(micros(70), "red")


def test_bulk_goes_to_its_run() -> None:
    told = History()
    times = array("q", [micros(0), micros(1)])
    told.extend(times, bytes([EventCode.JOB_START, EventCode.STEP_START]), array("i", [0, 0]), run="blue")
    assert told.runs(micros(9)) == ["blue"]
    assert told.of(micros(9)).open_step(micros(9)) == (0, micros(1))


def test_an_empty_history_has_a_run_without_anything() -> None:
    told = History()
    assert told.runs(micros(9)) == ["1"]
    assert told.of(micros(9)).account(micros(9)).elapsed == 0
