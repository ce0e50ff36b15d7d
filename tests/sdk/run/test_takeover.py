"""A program that becomes a daemon goes on with its run; other forked children do not lead it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.runs import attempt_rows, list_runs, ranks_of, read_records
from support.programs.processes import eventually
from support.servers.report_servers import report_server

if TYPE_CHECKING:
    from support.programs.processes import Programs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

DAEMON = """
import os, sys, time
from mldiagnostics import machinelearning_run
run = machinelearning_run("job", log_system_metrics=False)
file = run.directory + "/run.json"
if sys.argv[1] == "written":
    while not os.path.exists(file): time.sleep(0.01)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
run.step(0)
while f'"incarnation": "{run.recording.origin.incarnation}"' not in (os.path.exists(file) and open(file).read() or ""):
    time.sleep(0.01)
run.step(1)
if sys.argv[2] == "fails":
    raise ValueError("no data")
"""


@pytest.mark.parametrize(("parent", "end"), [("at once", "ends"), ("written", "ends"), ("written", "fails")])
def test_a_daemon_leads_the_run_of_its_parent(programs: Programs, parent: str, end: str) -> None:
    assert programs.run(DAEMON, parent, end).code == 0
    eventually(lambda: [run for run in list_runs(programs.storage) if run.ended is not None])
    run = programs.the_run()
    phase, reason = ("Failed", "UncaughtException") if end == "fails" else ("Completed", "")
    assert (run.phase, run.reason, run.step) == (phase, reason, 1)
    assert [attempt.phase for attempt in attempt_rows(run)] == [phase], "it is the attempt of its parent"
    [rank] = ranks_of(programs.storage, run.run_id)
    assert (rank.phase, rank.step) == (phase, 1)


ORPHAN = """
import os, signal, sys, time
from mldiagnostics import machinelearning_run, metrics
run = machinelearning_run("job", log_system_metrics=False)
parent = os.getpid()
if os.fork() == 0:
    if sys.argv[1] == "daemon":
        os.setsid()
    metrics.record("loss", 0.5, step=7)
    while os.getppid() == parent: time.sleep(0.01)
    if sys.argv[1] == "daemon":  # a run that has ended stays so
        while "mldiagnostics-takeover" in [thread.name for thread in __import__("threading").enumerate()]:
            time.sleep(0.01)
    metrics.record("loss", 0.5, step=8)
    run.recording.flush(60)
    open(sys.argv[2], "w").close()
    os._exit(0)
while not [file for file in os.listdir(run.directory + "/records") if run.origin.incarnation not in file]:
    time.sleep(0.01)
while not os.path.exists(run.directory + "/run.json"): time.sleep(0.01)
if sys.argv[1] == "worker":
    os.kill(parent, signal.SIGKILL)
"""


@pytest.mark.parametrize(("child", "code"), [("worker", -9), ("daemon", 0)])
def test_other_children_leave_the_phase_alone(programs: Programs, tmp_path: Path, child: str, code: int) -> None:
    done = tmp_path / "done"
    assert programs.run(ORPHAN, child, str(done)).code == code
    eventually(done.exists)
    document = next(Path(programs.storage).glob("*/run.json")).read_text()
    assert "forkedFrom" not in document
    assert (programs.the_run().phase == "Completed") is (child == "daemon")


SERVING = """
import os, threading
from mldiagnostics import machinelearning_run
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
run = machinelearning_run("job", metrics_record_interval_sec=0.5)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
run.step(0)
print(os.getpid(), flush=True)
threading.Event().wait()
"""


def test_a_daemon_has_the_parts_of_a_run_and_ends_by_sigterm(programs: Programs, tmp_path: Path) -> None:
    with report_server(tmp_path / "control") as server, programs.started(SERVING, env=server.variables) as child:
        assert child.process.stdout is not None
        daemon = int(child.process.stdout.readline())
        try:
            eventually(lambda: [run for run in list_runs(programs.storage) if "forkedFrom" in run.document])
            run = programs.the_run()
            samples = {"host_cpu_utilization", "host_memory_utilization"}
            eventually(lambda: samples <= {record.name for record in read_records(programs.storage, run.run_id)})
            eventually(lambda: samples <= {name for each in server.reports[-1:] for name in each["metrics"]})
        finally:
            os.kill(daemon, signal.SIGTERM)
        assert child.end().err.count("\n") == 1, "the announcement only"
    run = programs.the_run()
    assert (run.phase, run.reason, run.step) == ("Failed", "Terminated", 0)
    assert [attempt.phase for attempt in attempt_rows(run)] == ["Failed"]
    last = server.reports[-1]
    assert (last["incarnation"], last["phase"], last["reason"]) == (run.document["incarnation"], "Failed", "Terminated")
    assert (last["progress"]["step"], last["run"]["started"]) == (0, run.started)
    codes = {event.code for event in server.entries[last["incarnation"]]}
    assert {EventCode.JOB_START, EventCode.STEP_START, EventCode.CAUSE} <= codes
