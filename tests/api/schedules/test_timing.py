from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.timing import Cron, Every, parse_period

BERLIN = ZoneInfo("Europe/Berlin")
NOW = 1_790_000_000.0
MOMENTS = st.floats(min_value=NOW, max_value=NOW + 10 * 366 * 86_400)


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


@given(st.integers(60, 10**6), MOMENTS, MOMENTS)
def test_a_period_has_its_slots_at_whole_multiples_of_it(period: int, anchor: float, time: float) -> None:
    slot = Every(period, anchor).after(time)
    assert slot > time
    assert slot >= anchor + period
    assert slot - time <= period or time < anchor
    assert (slot - anchor) / period == pytest.approx(round((slot - anchor) / period), abs=1e-3)


@given(
    st.sampled_from(
        ["0 3 * * *", "30 2 * * *", "*/15 * * * *", "30 1,2,3 * * *", "0 */6 * * *", "5 4 * * SUN", "*/7 2 * * *"]
    ),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    MOMENTS,
)
def test_the_slots_of_cron_only_go_forward(expression: str, zone: str, time: float) -> None:
    cron = Cron.parse(expression, zone)
    slots = []
    for _ in range(5):
        slot = cron.after(time)
        assert slot is not None
        slots.append(slot)
        assert slot > time
        time = slot
    assert sorted(set(slots)) == slots


def test_a_time_that_daylight_saving_skips_comes_at_once_and_a_repeated_one_once() -> None:
    cron = Cron.parse("30 2 * * *", "Europe/Berlin")
    spring = cron.after(berlin("2027-03-28T00:00"))
    assert spring == berlin("2027-03-28T03:00")
    assert cron.after(spring) == berlin("2027-03-29T02:30")
    autumn = cron.after(berlin("2026-10-25T00:00"))
    assert autumn == berlin("2026-10-25T02:30")
    for later_s in (1, 1800, 3600, 5400):
        assert cron.after(autumn + later_s) == berlin("2026-10-26T02:30")


def test_cron_that_never_comes_has_no_slot() -> None:
    assert Cron.parse("* * */20 * 1L", "Europe/Berlin").after(NOW) is None


@pytest.mark.parametrize(
    ("expression", "zone", "problem"),
    [
        ("* * * * * *", "UTC", "does not have 5 fields"),
        ("", "UTC", "does not have 5 fields"),
        ("61 * * * *", "UTC", "Bad minute"),
        ("0 0 30 2 *", "UTC", "Bad day-of-month"),
        ("0 0 * * *", "Mars/Olympus", "is not known"),
        ("0 0 * * *", "../etc/passwd", "is not known"),
        ("0 0 * * *", "Europe", "is not known"),
        ("0 " * 4 + "0" * 200, "UTC", "in at most 128 characters"),
    ],
)
def test_cron_that_is_not_valid_is_named(expression: str, zone: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Cron.parse(expression, zone)


@given(st.text(alphabet="0123456789*/,-LW#MONTUE ?", max_size=40))
def test_any_text_is_a_schedule_or_a_fault(text: str) -> None:
    try:
        cron = Cron.parse(text)
    except ValueError:
        return
    slot = cron.after(NOW)
    assert slot is None or slot > NOW


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("10m", 600), ("6h", 21_600), ("1d", 86_400)])
def test_periods_have_a_unit(text: str, seconds: int) -> None:
    assert parse_period(text) == seconds


@pytest.mark.parametrize("text", ["", "6", "0h", "6 h", "59s", "-1h", "1w", "1h30m", "1.5h", "٣h"])
def test_other_periods_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="every: "):
        parse_period(text)
