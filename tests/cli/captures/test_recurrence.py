"""Slots, triggers and budgets of `mldiag capture`, with a clock of the tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.schedules.decision import WantedCapture
from mldiagnostics_api.schedules.due import DueCaptures
from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.trigger_sample import TriggerSample
from mldiagnostics_cli.captures.recurrence import Recurrence, recurrence_of
from mldiagnostics_cli.captures.recurrence_arguments import RecurrenceArguments
from mldiagnostics_cli.captures.recurrence_record import RecurrenceRecord

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
DAY_S = 86_400


def starting(arguments: RecurrenceArguments, since: float = NOW) -> Recurrence:
    return recurrence_of(arguments).starting(since)


@dataclass
class Process:
    """A process that repeats a capture, between its start and its end."""

    recurrence: Recurrence
    memory: DueCaptures = field(default_factory=DueCaptures)
    readings: RunReadings = field(default_factory=RunReadings)

    def next(self, made: list[WantedCapture], sample: TriggerSample | None, now: float, **more: float) -> Any:
        """Return the capture to make; None without one."""
        if sample is not None:
            self.readings.observe(sample, now)
        due = self.recurrence.due(self.memory, made, now, readings=self.readings, **more)
        assert len(due.admitted) <= 1
        return next(iter(due.admitted), None)


def every(period: str, **more: Any) -> Recurrence:
    return starting(RecurrenceArguments(every=period, **more))


@given(st.lists(st.tuples(st.integers(1, 4000), st.booleans()), min_size=1, max_size=150), st.integers(0, 6))
def test_property_restarts_exceed_no_budget_and_double_no_slot(looks: list[tuple[int, bool]], per_day: int) -> None:
    recurrence = every("10m", per_day=per_day)
    process, made, now = Process(recurrence), list[WantedCapture](), NOW
    for pause_s, is_restarted in looks:
        if is_restarted:
            process = Process(recurrence)  # the record stays
        if (wanted := process.next(made, None, now)) is not None:
            made.append(wanted)
        now += pause_s
    slots = [each.slot for each in made]
    assert len(slots) == len(set(slots))
    for first in made:
        assert sum(first.time <= each.time < first.time + DAY_S for each in made) <= per_day


def test_the_first_slot_is_now_and_a_missed_one_is_not_made_up() -> None:
    process = Process(every("10m"))
    first = process.next([], None, NOW)
    assert first is not None
    assert process.next([first], None, NOW + 1) is None
    assert process.next([first], None, NOW + 3000 + 300) is None
    second = process.next([first], None, NOW + 3600)
    assert second is not None
    assert second.slot == NOW + 3600


def test_a_trigger_captures_once_and_says_why() -> None:
    process = Process(starting(RecurrenceArguments(triggers=("StepTimeSpread",))))
    slow = TriggerSample(step=5, host_step_times={"rank 0": 1.0, "rank 1": 1.0, "rank 2": 1.5})
    made: list[WantedCapture] = []
    for second in range(0, 600, 10):
        if (wanted := process.next(made, slow, NOW + second)) is not None:
            made.append(wanted)
    [capture] = made
    assert capture.message.startswith("StepTimeSpread: the steps of rank 2 take 50% longer than the median of 3 hosts")


def test_a_refused_trigger_is_named_once_in_ten_minutes() -> None:
    recurrence = starting(RecurrenceArguments(triggers=("StepTimeSpread",), per_day=0))
    slow = TriggerSample(step=5, host_step_times={"rank 0": 1.0, "rank 1": 1.0, "rank 2": 1.5})
    memory, readings, refused = DueCaptures(), RunReadings(), []
    for second in range(0, 1300, 10):
        readings.observe(slow, NOW + second)
        due = recurrence.due(memory, [], NOW + second, readings=readings)
        assert due.admitted == []
        refused += due.refused
    assert len(refused) == 3
    assert "the budget of 0 captures of this run in 24 hours is used" in refused[0][1].message


def test_a_slot_before_the_run_is_not_its_own() -> None:
    assert Process(every("10m")).next([], None, NOW + 10, started=NOW + 5) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (RecurrenceArguments(every="5s"), "--every: '5s' is shorter than 60 s"),
        (RecurrenceArguments(every="10ms"), "--every: '10ms' is not a period; use for example 10m"),
        (RecurrenceArguments(cron="* * */20 * 1L"), "--cron: no such day in the next 50 years"),
        (RecurrenceArguments(cron="0 0 * * *", time_zone="Mars/Olympus"), "timeZone: 'Mars/Olympus' is not known"),
        (RecurrenceArguments(triggers=("Slow",)), "--trigger 'Slow': no such trigger"),
        (RecurrenceArguments(every="1h", cron="0 0 * * *"), "--every and --cron: both are given"),
    ],
)
def test_options_that_are_not_valid_are_named(arguments: RecurrenceArguments, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        starting(arguments)
    assert message in str(error.value)


def test_a_dry_run_names_slots_triggers_and_budgets() -> None:
    recurrence = starting(RecurrenceArguments(cron="30 2 * * *", triggers=("StepTimeRise=20", "Hanging")))
    assert recurrence.describe(NOW) == [
        "Slots: 2026-09-22T02:30:00Z, 2026-09-23T02:30:00Z, 2026-09-24T02:30:00Z, …",
        "Trigger: StepTimeRise from 20%",
        "Trigger: Hanging",
        "Budget: at most 8 in 24 hours, at least 300 s apart",
    ]


def test_a_record_outlives_its_process_and_belongs_to_one(tmp_path: Path) -> None:
    with RecurrenceRecord.opened(["a"], NOW - 0.5, directory=tmp_path) as record:
        process = Process(starting(RecurrenceArguments(every="10m"), record.since))
        wanted = process.next(record.made, None, NOW)
        assert wanted is not None
        record.add(wanted)
        with (
            pytest.raises(ConfigurationError, match="another `mldiag capture` with this target"),
            RecurrenceRecord.opened(["a"], NOW, directory=tmp_path),
        ):
            pass
        with RecurrenceRecord.opened(["b"], NOW, directory=tmp_path) as other:
            assert other.made == []
    with RecurrenceRecord.opened(["a"], NOW + 60.5, directory=tmp_path) as again:
        assert ([each.slot for each in again.made], again.since) == ([NOW], NOW)
        assert Process(starting(RecurrenceArguments(every="10m"), again.since)).next(again.made, None, NOW + 60) is None
    with RecurrenceRecord.opened(["a"], NOW + DAY_S + 1, directory=tmp_path) as later:
        assert (later.made, later.since) == ([], NOW + DAY_S + 1)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"since": 1}', '{"since": "x", "captures": []}', '{"captures": 1}']
)
def test_a_damaged_record_counts_as_empty(tmp_path: Path, content: str) -> None:
    with RecurrenceRecord.opened(["a"], NOW, directory=tmp_path) as record:
        record.path.write_text(content)
    with RecurrenceRecord.opened(["a"], NOW, directory=tmp_path) as again:
        assert again.made == []


def test_a_record_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigurationError, match="cannot keep the record of the captures"),
        RecurrenceRecord.opened(["a"], NOW, directory=tmp_path / "file/records"),
    ):
        pass
