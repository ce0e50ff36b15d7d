"""Payloads of common shapes mean in columns what they mean one by one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.log.lines import LoggedPayload, take
from mldiagnostics.goodput.log.shapes import RepeatFilter, already_known, take_shaped
from support.goodput.entries import JOB, at, step, steps

if TYPE_CHECKING:
    from array import array


class EventList:
    """Keeps what it is fed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ignored: Counter[str] = Counter()
        self.columns = 0

    def add(self, event: Event) -> None:
        self.events.append(event)

    def extend(self, times: array[int], codes: bytes, args: array[int], *, rank: int = 0, run: str = "") -> None:
        self.columns += len(times)
        self.events += [
            Event(t, EventCode(code), arg, rank, run) for t, code, arg in zip(times, codes, args, strict=True)
        ]


odd: Any = st.sampled_from([None, True, "3", -1, 3.0, 2**31, float("nan"), float("inf"), [], 1e300])
indices: Any = st.one_of(st.integers(0, 5), odd)
moments: Any = st.one_of(st.integers(0, 50), st.floats(0, 50))
jobs = st.sampled_from([JOB, "another"])
payloads: Any = st.one_of(
    st.builds(lambda t, job: at("data_loading_start_time", t) | {"job_name": job}, moments, jobs),
    st.builds(lambda n, t, job: step(0, t) | {"step_count": n, "job_name": job}, indices, moments, jobs),
    st.builds(lambda t: {"job_name": JOB, "job_end_time": t}, odd),
    st.builds(lambda t: {"tpu_init_end_time": t}, moments),
    st.builds(lambda t: at("data_loading_end_time", t, rank=1), moments),
    odd,
)


@given(st.lists(payloads, max_size=8))
def test_columns_say_the_same(log: list[Any]) -> None:
    shaped, one_by_one = EventList(), EventList()
    for payload in take_shaped(log, JOB, shaped):
        if not isinstance(payload, dict) or payload.get("job_name", JOB) == JOB:
            take(LoggedPayload(payload, None, 0, ""), shaped)
    for payload in log:
        if not isinstance(payload, dict) or payload.get("job_name", JOB) == JOB:
            take(LoggedPayload(payload, None, 0, ""), one_by_one)
    assert sorted(shaped.events) == sorted(one_by_one.events)
    assert shaped.ignored == one_by_one.ignored


def test_what_recorders_write_most_is_in_columns() -> None:
    collected = EventList()
    log = [at("job_start_time", 0), at("data_loading_start_time", 1), at("data_loading_end_time", 2), step(0, 3)]
    assert take_shaped(log, JOB, collected) == []
    assert collected.columns == 4


letters = st.lists(st.sampled_from("abc"), max_size=6)


@given(letters, letters, letters)
def test_only_what_an_answer_repeats_is_known(old: list[str], both: list[str], new: list[str]) -> None:
    before, now = old + both, both + new
    known = already_known(before, now)
    assert now[:known] == before[len(before) - known :]
    if len(set(before)) == len(before):
        assert known >= len(both)


@given(st.lists(st.lists(st.integers(0, 30), max_size=8, unique=True), max_size=8))
def test_answers_are_taken_whole_however_they_overlap(answers: list[list[int]]) -> None:
    repeats, taken = RepeatFilter(), set()
    for answer in answers:
        new = repeats.new_in(answer)
        assert answer[len(answer) - len(new) :] == new
        taken |= set(new)
        assert set(answer) <= taken


def test_of_a_list_that_grew_only_what_it_grew_by_is_new() -> None:
    log: list[Any] = [at("job_start_time", 0), *steps(0, [float(t) for t in range(1, 100_000)])]
    repeats = RepeatFilter()
    assert repeats.new_in([dict(each) for each in log]) == log
    log += steps(99_999, [100_000.0])
    assert repeats.new_in([dict(each) for each in log]) == log[-1:]
    log.insert(5, at("tpu_init_start_time", 0.5))
    assert len(repeats.new_in(log)) == len(log)


def test_payloads_that_cannot_be_compared_are_not_known() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("neither equal nor not")

        __hash__ = object.__hash__

    assert already_known([Odd(), {"a": 1}], [{"a": 1}]) == 0
    repeats = RepeatFilter()
    for answer in ([Odd()], [Odd(), {"a": 1}]):
        assert repeats.new_in(answer) == answer
