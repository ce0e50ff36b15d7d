"""Snapshots: a ledger comes back as it was, and other files are rejected."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.history import History
from support.goodput.notation import events, micros
from support.goodput.story import eventful

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = micros(500)
TRACE = "job@0 tpu@1-3 slices:3/4/4@2 0..4@10+10 saved:2@31-33 save:3@41-42#1 cause:eviction@55 job@70 *eval@72- 3@80"


def dumped(ledger: Ledger | History) -> bytes:
    file = BytesIO()
    ledger.dump(file)
    return file.getvalue()


def ledger(*, folded: bool = True) -> Ledger:
    result = Ledger(splits=True)
    for event in events(TRACE):
        result.add(event)
    if folded:
        result.account(NOW)
    return result


def answers(result: Ledger) -> list[object]:
    return [
        result.account(NOW),
        result.disruptions(NOW),
        list(result.timeline(NOW)),
        result.slices(NOW, micros(0), NOW),
        dict(result.ignored),
    ]


@pytest.mark.parametrize("folded", [True, False])
def test_a_loaded_ledger_returns_the_same_results(folded: bool) -> None:
    again = Ledger.load(BytesIO(dumped(ledger(folded=folded))))
    assert answers(again) == answers(ledger())
    assert again.account(micros(35)) == ledger().account(micros(35))


def test_a_loaded_ledger_is_already_folded() -> None:
    again = Ledger.load(BytesIO(dumped(ledger())))
    (run,) = again.known_runs
    assert run.fold.state.place == len(again.log.t)
    assert len(run.fold.folded.at) == 6


def test_one_file_can_hold_several_ledgers() -> None:
    file = BytesIO(dumped(ledger()) * 2 + b"and more")
    assert answers(Ledger.load(file)) == answers(Ledger.load(file))
    assert file.read() == b"and more"


def changed(content: bytes, change: Callable[[dict[str, object]], object]) -> bytes:
    line, _, rest = content.partition(b"\n")
    head = json.loads(line)
    change(head)
    return json.dumps(head).encode() + b"\n" + rest


def test_other_files_are_rejected_with_a_reason() -> None:
    whole = dumped(ledger())
    cases = {
        "it begins with b''": b"",
        "it begins with b'garbage": b"garbage \x00\xff",
        "it begins with b'\\[1": b"[1, 2]\n",
        "version 7 instead of 2": changed(whole, lambda head: head.update(version=7)),
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


def test_a_loaded_history_has_all_its_runs() -> None:
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


def test_files_that_are_not_a_history_are_rejected_with_a_reason() -> None:
    whole = dumped(History())
    cases = {
        "not a mldiagnostics goodput history": dumped(ledger()),
        "version None": changed(whole, lambda head: head.pop("version")),
        "it begins with b'no": b"no",
        "KeyError\\('runs'\\)": changed(whole, lambda head: head.pop("runs")),
        "not a mldiagnostics goodput ledger": changed(whole, lambda head: head.update(runs=["a", "b"])),
    }
    for reason, content in cases.items():
        with pytest.raises(ValueError, match=reason):
            History.load(BytesIO(content))
