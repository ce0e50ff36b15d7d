"""Several runs under one name, distinguished by their ids, or by the end of one and the start of the next."""

from __future__ import annotations

from array import array

import pytest
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger.history import History
from support.goodput.notation import events, micros, summary


def history(text: str, *, run: str = "", into: History | None = None) -> History:
    filled = into or History()
    for event in events(text):
        filled.add(event._replace(run=run))
    return filled


def test_a_job_start_after_a_recorded_end_begins_another_run() -> None:
    job_history = history("job@0 0..2@0+10 end@30 job@50 0..4@60+10")
    assert job_history.runs(micros(200)) == ["1", "2"]
    assert summary(job_history.of(micros(200), "1").account(micros(200))) == {"ok": 30, "of": 30, "max": 2}
    assert summary(job_history.of(micros(105)).account(micros(105))) == {"ok": 40, "other": 15, "of": 55, "max": 3}
    assert job_history.of(micros(200), "2").started == micros(50)


def test_a_job_that_continues_at_its_last_step_is_the_same_run() -> None:
    job_history = history("job@0 0..2@0+10 end@30 job@50")
    assert job_history.runs(micros(55)) == ["1", "2"]
    history("3..4@60+10", into=job_history)
    assert job_history.runs(micros(75)) == ["1"]
    assert summary(job_history.of(micros(75)).account(micros(75)))["recovery"] == 20
    assert job_history.runs(micros(55)) == ["1", "2"]


def test_an_end_that_comes_late_divides_what_was_one() -> None:
    job_history = history("job@0 0..2@0+10 job@50 0..4@60+10")
    assert job_history.runs(micros(200)) == ["1"]
    history("end@30", into=job_history)
    assert job_history.runs(micros(200)) == ["1", "2"]
    assert summary(job_history.of(micros(200), "1").account(micros(200))) == {"ok": 30, "of": 30, "max": 2}


def test_runs_with_ids_are_distinguished_by_them() -> None:
    job_history = history("job@0 0..2@0+10 end@30 job@50 0@60", run="blue")
    history("job@5 0..2@10+10", run="green", into=job_history)
    history("job@-9 0..2@-9+1", into=job_history)
    assert job_history.runs(micros(70)) == ["1", "blue", "green"]
    assert job_history.runs(micros(2)) == ["1", "blue"]
    assert job_history.of(micros(70)).started == micros(5)
    assert job_history.of(micros(70), "blue").account(micros(70)).disruptions == 1
    with pytest.raises(KeyError, match="run 'red': not in the log; use one of 1, blue, green"):
        job_history.of(micros(70), "red")


def test_bulk_goes_to_its_run() -> None:
    job_history = History()
    times = array("q", [micros(0), micros(1)])
    job_history.extend(times, bytes([EventCode.JOB_START, EventCode.STEP_START]), array("i", [0, 0]), run="blue")
    assert job_history.runs(micros(9)) == ["blue"]
    assert job_history.of(micros(9)).open_step(micros(9)) == (0, micros(1))


def test_an_empty_history_has_a_run_without_anything() -> None:
    job_history = History()
    assert job_history.runs(micros(9)) == ["1"]
    assert job_history.of(micros(9)).account(micros(9)).elapsed == 0
