from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.coalescer import Coalescer

INTERVAL_S = 5.0


@dataclass(frozen=True)
class Put:
    urgent: bool


@dataclass(frozen=True)
class Pass:
    """Time passes; a value that is due is sent as soon as it is due."""

    seconds: float


@dataclass(frozen=True)
class SendFails:
    """The value that was taken last could not be sent."""


@dataclass(frozen=True)
class Clear:
    pass


STEPS = st.one_of(
    st.builds(Put, st.booleans()),
    st.builds(Pass, st.floats(0, 12)),
    st.just(SendFails()),
    st.just(Clear()),
)


@given(st.lists(STEPS, max_size=40))
def test_the_newest_value_is_sent_in_time_and_others_are_replaced_as_a_property(steps: list[object]) -> None:
    coalescer = Coalescer[int](INTERVAL_S)
    now, newest, cleared, urgent_since = 0.0, 0, 0, False
    sent: list[tuple[float, int, bool]] = []
    put_at: dict[int, float] = {}
    for step in [*steps, Pass(INTERVAL_S)]:
        if isinstance(step, Put):
            newest += 1
            put_at[newest] = now
            urgent_since |= step.urgent
            coalescer.put(newest, now=now, within_s=0 if step.urgent else INTERVAL_S)
        elif isinstance(step, SendFails):
            coalescer.put_back(now=now)
        elif isinstance(step, Clear):
            coalescer.clear()
            cleared, urgent_since = newest, False
        elif isinstance(step, Pass):
            until = now + step.seconds
            while coalescer.due_at is not None and coalescer.due_at <= until:
                now = max(now, coalescer.due_at)
                value = coalescer.take(now=now)
                assert value == newest > cleared, "only the newest is sent, and nothing that was cleared"
                sent.append((now, value, urgent_since))
                urgent_since = False
            now = until
            assert coalescer.take(now=now) is None
    assert newest == cleared or sent[-1][1] == newest, "the last value is sent"
    for (earlier, _, _), (later, _, urgent) in pairwise(sent):
        assert urgent or later - earlier >= INTERVAL_S * (1 - 1e-9), "one per interval, unless it is urgent"
    assert [value for _, value, _ in sent] == sorted(value for _, value, _ in sent)
    first_sent = {value: at for at, value, _ in reversed(sent)}
    for value, at in first_sent.items():
        assert at >= put_at[value]


def test_an_urgent_value_is_due_at_once() -> None:
    coalescer = Coalescer[str](INTERVAL_S)
    coalescer.put("progress", now=0.0)
    assert coalescer.take(now=1.0) is None
    coalescer.put("phase", now=1.0, within_s=0)
    assert coalescer.take(now=1.0) == "phase"
    assert coalescer.due_at is None


def test_a_burst_is_sent_once_one_interval_after_its_first_value() -> None:
    coalescer = Coalescer[int](INTERVAL_S)
    for number in range(100):
        coalescer.put(number, now=number / 100)
    assert coalescer.due_at == INTERVAL_S
    assert coalescer.take(now=INTERVAL_S) == 99
    assert coalescer.take(now=2 * INTERVAL_S) is None


def test_a_value_that_was_not_sent_does_not_replace_a_newer_one() -> None:
    coalescer = Coalescer[str](INTERVAL_S)
    coalescer.put("old", now=0.0, within_s=0)
    assert coalescer.take(now=0.0) == "old"
    coalescer.put("new", now=1.0)
    coalescer.put_back(now=2.0)
    assert coalescer.take(now=6.0) == "new"
