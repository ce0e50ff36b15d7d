"""Real programs report to the real control plane over a real API server."""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import goodput
from mldiagnostics_operator.control_plane.memory import run_events, table
from support.cluster.control_planes import make_account, serving
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.control_planes import Running

pytestmark = pytest.mark.apiserver

PROGRAM = """
import sys, threading
from mldiagnostics import diagnostics, machinelearning_run, metrics
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
run = machinelearning_run("job", run_group="group", configs={"lr": 0.1}, log_system_metrics=False)
for step in range(50):
    run.step(step)
    metrics.record("loss", 50.0 - step, step=step)
print("ran", flush=True)
WAIT
run.close(timeout_s=60)
print(diagnostics.counts())
"""


async def pod_of(plane: Running, folder: Path) -> tuple[str, dict[str, str]]:
    """Return a run, and the variables of a pod of it."""
    job = await plane.job()
    pod = await plane.pod(owner=job)
    (folder / "token").write_text(await plane.token(pod))
    run = plane.run_of(job)
    return run, {
        "MLDIAG_RUN_ID": run,
        "MLDIAG_POD_NAME": "trainer-0",
        "MLDIAG_POD_UID": pod["metadata"]["uid"],
        "MLDIAG_CONTROL_PLANE_URL": plane.url,
        "MLDIAG_CONTROL_PLANE_CA": str(folder / "pki/ca.crt"),
        "MLDIAG_CONTROL_PLANE_TOKEN_FILE": str(folder / "token"),
    }


async def test_a_program_reports_from_its_start_to_its_end(plane: Running, tmp_path: Path) -> None:
    run, env = await pod_of(plane, tmp_path)
    programs = Programs(tmp_path)
    ended = await asyncio.to_thread(programs.run, PROGRAM.replace("WAIT", ""), env=env)
    assert (ended.code, ended.out) == (0, "ran\n{}\n"), ended.err
    view = await plane.until(run, lambda view: view.goodput and view.goodput.last_step == 49)
    assert (view.name, view.group, view.storage, view.phase) == ("job", "group", programs.storage, "Completed")
    assert (view.step, view.metrics, view.configs.sections["user"]) == (49, {"loss": 1.0}, {"lr": "0.1"})
    [host] = view.hosts
    assert (host.pod, host.rank, host.phase, host.step) == ("trainer-0", 0, "Completed", 49)
    assert_same_account(view, programs)


async def test_a_program_misses_nothing_when_the_control_plane_restarts(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    programs = Programs(tmp_path)
    with ExitStack() as stack:
        async with serving(cluster, namespace, tmp_path) as before:
            run, env = await pod_of(before, tmp_path)
            source = PROGRAM.replace("WAIT", "threading.Event().wait()")
            program = stack.enter_context(programs.started(source, env=env))
            await before.until(run, lambda view: view.phase == "Active")
        port = int(before.url.rpartition(":")[2])
        async with serving(cluster, namespace, tmp_path, control_plane_port=port) as after:  # with other certificates
            await asyncio.to_thread(program.says, "ran")
            program.process.terminate()
            ended = await asyncio.to_thread(program.end)
            assert ended.code == -signal.SIGTERM, ended.err
            view = await after.until(run, lambda view: view.goodput and view.goodput.last_step == 49)
    assert (view.phase, view.reason, view.name) == ("Failed", "Terminated", "job")
    assert_same_account(view, programs)


async def test_the_account_of_a_run_ends_with_the_last_event_that_is_kept(
    plane: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (run_events, table):  # the first report may have all events
        monkeypatch.setattr(module, "MAX_EVENTS_OF_RUN", 30)
    run, env = await pod_of(plane, tmp_path)
    programs = Programs(tmp_path)
    ended = await asyncio.to_thread(programs.run, PROGRAM.replace("WAIT", ""), env=env)
    assert ended.code == 0
    assert "keeps no more goodput events of this run" in ended.err
    assert "did not confirm the end" not in ended.err
    view = await plane.until(run, lambda view: view.goodput and view.goodput.last_step)
    assert (view.phase, view.step) == ("Completed", 49)
    assert view.goodput is not None
    assert 20 < (view.goodput.last_step or 0) < 30
    assert_same_account(view, programs)


async def test_the_port_for_googles_sdk_gets_no_reports_of_ours(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    async with serving(cluster, namespace, tmp_path, peer_port=0) as plane:
        env = {"DIAGON_BASE_URL": plane.peer_url}
        ended = await asyncio.to_thread(Programs(tmp_path).run, PROGRAM.replace("WAIT", ""), env=env)
    assert ended.code == 0
    [warning] = [line for line in ended.err.splitlines() if "DIAGON_BASE_URL" in line]
    assert "set MLDIAG_CONTROL_PLANE_URL to the https:// URL of the operator's API" in warning
    assert list(plane.table.runs()) == []


def assert_same_account(view: ReportedRun, programs: Programs) -> None:
    """Compare the account of the control plane with that of the run's own log."""
    assert view.goodput is not None
    report = goodput(programs.the_run().directory, now=view.goodput.as_of)
    assert report is not None
    assert view.goodput.goodput == pytest.approx(report.cumulative.goodput)
    assert view.goodput.unproductive == pytest.approx(report.cumulative.unproductive_s)
    assert view.goodput.disruptions == report.cumulative.disruptions
