"""A ledger in a file: it comes back as it was, and nothing else is taken for one."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.ledger import Ledger
from support.goodput_notation import events, micros
from support.goodput_story import eventful

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = micros(500)
TRACE = "job@0 tpu@1-3 slices:3/4/4@2 0..4@10+10 saved:2@31-33 save:3@41-42#1 cause:eviction@55 job@70 *eval@72- 3@80"


def dumped(ledger: Ledger | History) -> bytes:
    file = BytesIO()
    ledger.dump(file)
    return file.getvalue()


def ledger(*, asked: bool = True) -> Ledger:
    found = Ledger(splits=True)
    for event in events(TRACE):
        found.add(event)
    if asked:
        found.account(NOW)
    return found


def answers(found: Ledger) -> list[object]:
    return [
        found.account(NOW),
        found.disruptions(NOW),
        list(found.timeline(NOW)),
        found.slices(NOW, micros(0), NOW),
        dict(found.ignored),
    ]


@pytest.mark.parametrize("asked", [True, False])
def test_it_comes_back_as_it_was(asked: bool) -> None:
    again = Ledger.load(BytesIO(dumped(ledger(asked=asked))))
    assert answers(again) == answers(ledger())
    assert again.account(micros(35)) == ledger().account(micros(35))


def test_what_was_folded_is_not_folded_again() -> None:
    again = Ledger.load(BytesIO(dumped(ledger())))
    (life,) = again.known_lives
    assert life.fold.state.place == len(again.log.t)
    assert len(life.fold.told.at) == 6


def test_several_follow_each_other_in_one_file() -> None:
    file = BytesIO(dumped(ledger()) * 2 + b"and more")
    assert answers(Ledger.load(file)) == answers(Ledger.load(file))
    assert file.read() == b"and more"


def changed(content: bytes, change: Callable[[dict[str, object]], object]) -> bytes:
    line, _, rest = content.partition(b"\n")
    head = json.loads(line)
    change(head)
    return json.dumps(head).encode() + b"\n" + rest


def test_what_is_none_is_refused_with_a_reason() -> None:
    whole = dumped(ledger())
    cases = {
        "it begins with b''": b"",
        "it begins with b'garbage": b"garbage \x00\xff",
        "it begins with b'\\[1": b"[1, 2]\n",
        "of version 7, this reads 2": changed(whole, lambda head: head.update(version=7)),
        "cut off, 3 of 20 bytes": whole.partition(b"\n")[0] + b"\nabc",
        "cut off": whole[:-1],
        "damaged": whole[:-5] + b"\x7f" + whole[-4:],
        "KeyError\\('table'\\)": changed(whole, lambda head: head.pop("table")),
        "0 runs in": changed(whole, lambda head: head.update(lives=[])),
        "TypeError": changed(whole, lambda head: head.update(lengths=None)),
    }
    for reason, content in cases.items():
        with pytest.raises(ValueError, match=reason.replace("3 of 20", r"3 of \d+")):
            Ledger.load(BytesIO(content))


def test_a_wrong_length_costs_no_memory() -> None:
    whole = dumped(ledger())
    lengths = json.loads(whole.partition(b"\n")[0])["lengths"]
    with pytest.raises(ValueError, match="cut off"):
        Ledger.load(BytesIO(changed(whole, lambda head: head.update(lengths=[10**15, *lengths[1:]]))))


def test_a_history_comes_back_with_all_its_runs() -> None:
    history = History()
    history.ignored["binary garbage"] = 3
    for event in eventful().events:
        history.add(event)
        history.add(event._replace(run="other", t=event.t + 7))
    end = max(event.t for event in eventful().events) + 10
    before = [history.of(end, name).account(end) for name in history.runs(end)]
    again = History.load(BytesIO(dumped(history)))
    assert again.runs(end) == history.runs(end) == ["1", "other"]
    assert [again.of(end, name).account(end) for name in again.runs(end)] == before
    assert again.ignored == {"binary garbage": 3}


def test_what_is_no_history_is_refused_with_a_reason() -> None:
    whole = dumped(History())
    cases = {
        "no mldiagnostics goodput history": dumped(ledger()),
        "of version None": changed(whole, lambda head: head.pop("version")),
        "it begins with b'no": b"no",
        "KeyError\\('runs'\\)": changed(whole, lambda head: head.pop("runs")),
        "no mldiagnostics goodput ledger": changed(whole, lambda head: head.update(runs=["a", "b"])),
    }
    for reason, content in cases.items():
        with pytest.raises(ValueError, match=reason):
            History.load(BytesIO(content))
