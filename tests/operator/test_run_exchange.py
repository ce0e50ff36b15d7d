from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.v1alpha1 import RunSession
from mldiagnostics_operator import run_exchange
from mldiagnostics_operator.run_exchange import RunExchange

if TYPE_CHECKING:
    import pytest


def test_a_session_is_passed_on_and_replaced_by_its_newer_state() -> None:
    exchange, changed = RunExchange(), list[RunKey]()
    exchange.subscribe(changed.append)
    for state in ("Running", "Succeeded"):
        exchange.note_sessions("ml", {"r1": RunSession(id="s", state=state)})
    assert changed == [RunKey("ml", "r1")] * 2
    assert [each.state for each in exchange.sessions(RunKey("ml", "r1"))] == ["Succeeded"]
    assert exchange.sessions(RunKey("other", "r1")) == ()
    assert exchange.reported_in("ml") == []


def test_runs_and_their_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_exchange, "MAX_RUNS", 3)
    exchange = RunExchange()
    for number in range(5):
        exchange.note_sessions("ml", {f"r{number}": RunSession(id="s")})
    for number in range(40):
        exchange.note_sessions("ml", {"r4": RunSession(id=f"s{number}")})
    kept = [number for number in range(5) if exchange.sessions(RunKey("ml", f"r{number}"))]
    assert kept == [2, 3, 4]
    newest = [each.id for each in exchange.sessions(RunKey("ml", "r4"))]
    assert newest == [f"s{number}" for number in range(8, 40)]
