"""Drops are counted by reason and returned once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, get_args

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.drops import ADVICE, Drops, Reason
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

REASONS: list[Reason] = sorted(ADVICE)
LOSSES = st.tuples(st.sampled_from(REASONS), st.integers(1, 5), st.sampled_from(["", "jsonl"]))


def test_every_reason_has_its_advice() -> None:
    assert sorted(get_args(Reason)) == REASONS


@given(st.lists(st.lists(LOSSES, max_size=5), max_size=5))
def test_news_add_up_to_the_totals(rounds: list[list[tuple[Reason, int, str]]]) -> None:
    drops = Drops()
    returned: dict[str, int] = {}
    for losses in rounds:
        for reason, number, sink in losses:
            drops.count(reason, number, sink=sink, detail="loss")
        for new in drops.take_new():
            key = f"{new.sink}: {new.reason}" if new.sink else new.reason
            returned[key] = returned.get(key, 0) + new.number
        assert drops.take_new() == []
    assert returned == drops.totals()


def test_the_subject_of_a_warning_has_single_blanks() -> None:
    drops = Drops()
    drops.count("bad-value")
    drops.count("refused", sink="jsonl")
    assert [new.subject for new in drops.take_new()] == ["dropped bad-value", "dropped jsonl refused"]


def test_threads_count_together() -> None:
    drops = Drops()
    threads = [threading.Thread(target=lambda: [drops.count("bad-value") for _ in range(1000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drops.totals() == {"bad-value": 8000}


def test_a_signal_handler_counts_in_the_middle_of_a_count(tmp_path: Path) -> None:
    source = """
    import signal
    from mldiagnostics.pipeline.drops import Drops
    drops, handled = Drops(), 0
    def handler(*_):
        global handled
        handled += 1
        drops.count("bad-value")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.00005, 0.00005)
    for _ in range(200_000):
        drops.count("bad-value")
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert handled
    new = sum(one.number for one in drops.take_new())
    print(drops.totals()["bad-value"] - 200_000 - handled, new - 200_000 - handled)
    """
    ended = Programs(tmp_path).run(source)
    assert (ended.out, ended.err) == ("0 0\n", "")


def test_the_message_has_number_reason_and_advice() -> None:
    drops = Drops()
    drops.count("too-large", 2, sink="jsonl", detail="text: 5000 bytes")
    assert drops.take_new()[0].sentence() == (
        "sink jsonl dropped 2 records, too-large (text: 5000 bytes): a value with its labels may have 4 KiB;"
        " store larger values as files"
    )
