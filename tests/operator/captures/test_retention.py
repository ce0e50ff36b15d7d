from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.captures.retention import LONGEST_WAIT, SHORTEST_WAIT, Finished, sweep

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
AGES = st.none() | st.timedeltas(min_value=timedelta(hours=-1), max_value=timedelta(hours=1)).map(lambda age: NOW - age)
OBJECTS = st.lists(
    st.builds(
        Finished,
        namespace=st.just("ml"),
        name=st.just("capture"),
        uid=st.uuids().map(str),
        finished=AGES,
        ttl_s=st.none() | st.integers(0, 3600),
    )
)


def due(item: Finished) -> datetime | None:
    if item.finished is None or item.ttl_s is None:
        return None
    return item.finished + timedelta(seconds=item.ttl_s)


@given(OBJECTS)
def test_exactly_the_expired_objects_are_deleted(objects: list[Finished]) -> None:
    expired = set(sweep(objects, now=NOW).expired)
    for item in objects:
        moment = due(item)
        assert (item in expired) == (moment is not None and moment <= NOW)


@given(OBJECTS)
def test_the_next_sweep_is_not_later_than_the_next_expiry(objects: list[Finished]) -> None:
    result = sweep(objects, now=NOW)
    assert SHORTEST_WAIT <= result.wait <= LONGEST_WAIT
    moments = [moment for moment in map(due, objects) if moment is not None and moment > NOW]
    if moments:
        assert result.wait <= max(min(moments) - NOW, SHORTEST_WAIT)


def test_an_object_without_a_time_to_live_stays_for_ever() -> None:
    item = Finished("ml", "old", "u", NOW - timedelta(days=400), None)
    assert sweep([item], now=NOW).expired == ()
