"""Names and step windows are the same on every host."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.identity.origin import Origin
from mldiagnostics.layout import sanitize, trace_key
from mldiagnostics.profiling.naming import host_stem, named_session, numbered_session, step_session, window

NUMBERS = st.integers(0, 10**6)


def origin(host: str = "h", *, rank: int = 0, world_size: int = 1, local_rank: int = 0, namespace: str = "") -> Origin:
    return Origin(
        "r", "n", "s", "i", host, rank=rank, world_size=world_size, local_rank=local_rank, namespace=namespace
    )


@given(first=st.tuples(NUMBERS, NUMBERS, st.booleans()), second=st.tuples(NUMBERS, NUMBERS, st.booleans()))
def test_property_unnamed_sessions_have_different_names(
    first: tuple[int, int, bool], second: tuple[int, int, bool]
) -> None:
    def name(attempt: int, number: int, by_step: bool) -> str:
        return step_session(attempt, number) if by_step else numbered_session(attempt, number)

    assert (name(*first) == name(*second)) is (first == second)
    assert sanitize(name(*first)) == name(*first)


@given(st.text(min_size=1))
def test_property_any_session_name_is_a_valid_file_name(name: str) -> None:
    key = trace_key(named_session(name), "host")
    assert len(key.split("/")) == 4


@given(world=st.integers(2, 50), ranks=st.tuples(st.integers(0, 49), st.integers(0, 49)))
def test_property_processes_of_one_host_have_different_files(world: int, ranks: tuple[int, int]) -> None:
    assume(ranks[0] != ranks[1])
    for namespace in ("", "ml"):
        one, other = (
            origin(rank=rank, world_size=world, local_rank=rank if namespace else 0, namespace=namespace)
            for rank in ranks
        )
        assert host_stem(one) != host_stem(other)


def test_a_pods_file_has_the_same_name_as_in_captures() -> None:
    assert host_stem(origin("trainer-0", rank=3, world_size=8, namespace="ml")) == "trainer-0"
    assert host_stem(origin("trainer-0", rank=3, world_size=8, local_rank=1, namespace="ml")) == "trainer-0_1"
    assert host_stem(origin("laptop")) == "laptop"
    assert host_stem(origin("laptop", local_rank=1)) == "laptop_1"


@given(first=NUMBERS, length=st.integers(1, 1000), step=NUMBERS)
def test_property_a_window_contains_its_steps_once(first: int, length: int, step: int) -> None:
    steps_window = window((first, first + length), None)
    assert steps_window is not None
    assert (step in steps_window) is (first <= step < first + length)


@given(first=NUMBERS, every=st.integers(1, 1000), round_=st.integers(-3, 20), data=st.data())
def test_property_a_window_repeats(first: int, every: int, round_: int, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, every))
    step = first + round_ * every + data.draw(st.integers(0, every - 1))
    steps_window = window((first, first + length), every)
    assert steps_window is not None
    assert (step in steps_window) is (round_ >= 0 and (step - first) % every < length)


@given(st.integers(1, 1000))
def test_property_every_n_steps_alone_records_single_steps_without_step_0(every: int) -> None:
    steps_window = window(None, every)
    assert steps_window is not None
    recorded = [step for step in range(3 * every + 1) if step in steps_window]
    assert recorded == [every, 2 * every, 3 * every]


def test_without_steps_there_is_no_window() -> None:
    assert window(None, None) is None


@pytest.mark.parametrize(
    ("steps", "every"),
    [((3, 3), None), ((5, 3), None), ((-1, 3), None), ((1,), None), (7, None), ("ab", None), (None, 0), (None, "x")],
)
def test_invalid_steps_are_rejected_with_their_values(steps: object, every: object) -> None:
    with pytest.raises(ConfigurationError, match="steps="):
        window(steps, every)  # type: ignore[arg-type]  # invalid on purpose


def test_a_window_longer_than_its_interval_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="more steps than every_n_steps"):
        window((0, 11), 10)
