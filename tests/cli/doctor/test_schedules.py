from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_cli.doctor.finding import State
from mldiagnostics_cli.doctor.schedules import schedule_findings


def schedule(name: str, **conditions: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"type": kind, "status": status, "reason": reason, "message": f"because of {reason}"}
        for kind, (status, reason) in conditions.items()
    ]
    return {"metadata": {"name": name}, "status": {"conditions": made}}


READY = ("True", "Scheduled")


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"Ready": ("False", "NeverDue")}, "a: NeverDue: because of NeverDue"),
        ({"Ready": ("False", "StorageFull")}, "a: StorageFull: because of StorageFull"),
        (
            {"Ready": READY, "BudgetAvailable": ("False", "Captures")},
            "a: budgets refuse captures: because of Captures",
        ),
    ],
)
def test_a_schedule_without_captures_is_broken(conditions: dict[str, tuple[str, str]], message: str) -> None:
    [finding] = schedule_findings([schedule("a", **conditions), schedule("b", Ready=READY)])
    assert (finding.state, finding.message, finding.remedy) == (State.BROKEN, message, "mldiag schedules get a")


def test_ready_and_suspended_schedules_are_one_line() -> None:
    [finding] = schedule_findings([schedule("a", Ready=READY), schedule("b", Ready=("False", "Suspended"))])
    assert (finding.state, finding.message) == (State.FINE, "2 in this namespace, none with a problem")
    assert schedule_findings([]) == []
