"""`mldiag schedules` on a real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.definitions import install
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

CREATE = ("schedules", "create", "nightly")


@pytest.fixture
async def mldiag(api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path) -> CommandLine:
    """The command line with a kubeconfig whose context has the namespace of the test."""
    await install(admin, SCHEDULES)
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "kubeconfig").write_text(config)
    return CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig")})


async def test_a_schedule_is_created_listed_suspended_and_deleted(
    mldiag: CommandLine, admin: ApiClient, namespace: str
) -> None:
    assert mldiag.run("schedules", "list").err.startswith(f"No schedules in namespace '{namespace}'")
    arguments = ("--every", "6h", "--trigger", "StepTimeRise=20", "--trigger", "Hanging", "--max-per-run", "4")
    (dry,) = mldiag.document(*CREATE, *arguments, "--workload", "jobset/trainer", "--dry-run")
    assert dry["spec"] == {
        "target": {"workloadRef": {"kind": "JobSet", "name": "trainer"}},
        "schedule": {"every": "6h"},
        "triggers": [{"type": "StepTimeRise", "thresholdPercent": 20}, {"type": "Hanging"}],
        "budget": {"capturesPerRun": 4},
    }
    assert mldiag.document("schedules", "list") == []
    assert mldiag.lines(*CREATE, *arguments, "-o", "name") == ["nightly"]
    assert "exists in namespace" in mldiag.failure(*CREATE, *arguments)
    assert "not seen by an operator yet" in "\n".join(mldiag.lines("schedules", "get", "nightly"))
    capture = {"name": "nightly-1", "run": "run-a", "time": "2026-11-22T10:00:00Z", "state": "Finished", "bytes": 2048}
    capture["message"] = "StepTimeRise: the step time is 31% above its usual value"
    refusal = {
        "reason": "CapturesPerRun",
        "count": 3,
        "lastTime": "2026-11-22T10:00:00Z",
        "run": "run-a",
        "message": "m",
    }
    ready = {"type": "Ready", "status": "True", "reason": "Scheduled", "message": "the next slot is at 12:00"}
    status = {
        "schedule": "every 6h, StepTimeRise, Hanging",
        "capturesLastDay": 1,
        "bytesLastDay": 2048,
        "captures": [capture],
        "refusals": [refusal],
        "conditions": [ready | {"lastTransitionTime": "2026-11-22T10:00:00Z"}],
    }
    path = path_to(*SCHEDULES.gvr, namespace=namespace, name="nightly", sub="status")
    await admin.patch(path, {"status": status})
    shown = "\n".join(mldiag.lines("schedules", "get", "nightly"))
    for part in ("every 6h, StepTimeRise, Hanging", "captures: 1, 2.0 KiB", "nightly-1", "Refused 3 by CapturesPerRun"):
        assert part in shown
    assert mldiag.lines("schedules", "list")[1].split()[:2] == ["nightly", "every"]
    pressed = {"_MLDIAG_COMPLETE": "bash_complete", "COMP_WORDS": "mldiag schedules suspend ni", "COMP_CWORD": "3"}
    assert replace(mldiag, env=mldiag.env | pressed).run().out == "plain,nightly\n"
    assert mldiag.document("schedules", "suspend", "nightly")[0]["spec"]["suspend"] is True
    assert mldiag.document("schedules", "resume", "nightly")[0]["spec"]["suspend"] is False
    assert mldiag.lines("schedules", "delete", "nightly", "-o", "name") == ["nightly"]
    assert "schedule nightly: not found in namespace" in mldiag.failure("schedules", "get", "nightly")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no --every, --cron or --trigger"),
        (("--every", "6h", "--cron", "0 0 * * *"), "--every and --cron: both are given"),
        (("--every", "5s"), "every: '5s' is shorter than 60 s"),
        (("--cron", "61 * * * *"), "cron: '61 * * * *': Bad minute"),
        (("--cron", "0 0 * * *", "--time-zone", "Mars"), "timeZone: 'Mars' is not known"),
        (("--trigger", "Slow"), "no such trigger; use one of StepTimeRise"),
        (("--trigger", "StepTimeRise=x"), "not a whole percentage"),
        (("--every", "6h", "--label", "llm"), "is not key=value"),
        (("--every", "6h", "--run", "a", "--label", "a=b"), "more than one kind is given"),
    ],
)
def test_wrong_options_are_named(mldiag: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    assert message in mldiag.failure(*CREATE, *arguments)
