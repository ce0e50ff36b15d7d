"""Programs report to a real HTTPS server, in spite of faults of the server and of their own."""

from __future__ import annotations

import datetime as dt
import socket
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log.jsonl import LocalLog
from support.programs.processes import Programs, eventually
from support.servers.report_servers import Answer, report_server

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.report_servers import ReportServer

PROGRAM = """
import os, signal, sys, threading
from mldiagnostics import diagnostics, machinelearning_run, metrics
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
run = machinelearning_run("job", run_group="group", configs={"lr": 0.1, "deep": DEEP}, log_system_metrics=False)
for step in range(300):
    run.step(step)
    metrics.record("loss", 300.0 - step, step=step)
metrics.record("per_device", [1.0, 3.0])
metrics.record("broken", float("nan"))
"""
AFTER_A_WARNING = """
import time
while "control-plane-unreachable" not in diagnostics.counts():
    time.sleep(0.01)
print("warned", flush=True)
threading.Event().wait()
"""
NESTED = "DEEP = []\nfor _ in range(30): DEEP = [DEEP]\n"


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    with report_server(tmp_path / "control") as served:
        yield served


def program(end: str) -> str:
    return f"{NESTED}{PROGRAM}{end}\n"


def pod(rank: int) -> dict[str, str]:
    """Return variables of a pod of two."""
    identity = {"MLDIAG_RUN_ID": "ab" * 32, "MLDIAG_RANK": str(rank), "MLDIAG_WORLD_SIZE": "2", "MLDIAG_ATTEMPT": "1"}
    return identity | {"MLDIAG_POD_NAME": f"pod-{rank}", "MLDIAG_POD_UID": f"uid-{rank}", "MLDIAG_NODE_NAME": "node"}


def test_a_run_reports_from_its_start_to_its_end(server: ReportServer, programs: Programs) -> None:
    wait = "while run.configs.get('softwareConfigs') == {}: pass"  # which a heartbeat completes
    ended = programs.run(program(f"{wait}\nrun.close()\nprint(diagnostics.counts())"), env=server.variables | pod(0))
    assert (ended.code, ended.out) == (0, "{}\n"), ended.err
    last = server.reports[-1]
    assert last["path"] == f"/v1/runs/{'ab' * 32}/reports"
    assert last["phase"] == "Completed"
    assert [report["sequence"] for report in server.reports] == list(range(1, len(server.reports) + 1))
    assert last["progress"]["step"] == 299
    assert last["metrics"] == {"loss": 1.0, "per_device": 2.0, "broken": None}
    assert last["host"] == {"name": "pod-0", "slice": None, "node": "node", "pod": "pod-0", "podUid": "uid-0"}
    assert (last["rank"], last["worldSize"], last["attempt"]) == (0, 2, 1)
    row = programs.the_run()
    assert (last["run"]["name"], last["run"]["group"], last["run"]["storage"]) == ("job", "group", programs.storage)
    assert last["run"]["started"] == row.started
    assert last["run"]["ended"] == row.ended
    configs = [report["configs"] for report in server.reports if "configs" in report]
    assert configs[-1]["user"]["lr"] == 0.1
    assert configs[-1]["software"]
    assert events(server) == events_of_the_log(programs)


def test_a_worker_reports_itself_only(server: ReportServer, programs: Programs) -> None:
    ended = programs.run(program("run.close()"), env=server.variables | pod(1))
    assert (ended.code, ended.err) == (0, "")
    assert {(report["rank"], report["host"]["pod"]) for report in server.reports} == {(1, "pod-1")}
    assert not {"run", "configs", "events"} & {key for report in server.reports for key in report}
    assert server.reports[-1]["phase"] == "Completed"


@pytest.mark.parametrize(
    ("end", "code", "reason"),
    [
        ("sys.exit(1)", 1, "ExitCode"),
        ("raise RuntimeError('of the test')", 1, "UncaughtException"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, "Terminated"),
    ],
)
def test_a_failure_is_reported(server: ReportServer, programs: Programs, end: str, code: int, reason: str) -> None:
    ended = programs.run(program(end), env=server.variables)
    assert ended.code == code, ended.err
    last = server.reports[-1]
    assert (last["phase"], last["reason"]) == ("Failed", reason)
    assert events(server) == events_of_the_log(programs)


def test_a_forked_child_reports_nothing(server: ReportServer, programs: Programs) -> None:
    fork = """
pid = os.fork()
metrics.record("of_the_child" if pid == 0 else "of_the_parent", 1.0)
if pid == 0:
    run.close()
    os._exit(0)
os.waitpid(pid, 0)
run.close()
"""
    ended = programs.run(program(fork), env=server.variables)
    assert ended.code == 0, ended.err
    assert len({report["incarnation"] for report in server.reports}) == 1
    assert "of_the_parent" in server.reports[-1]["metrics"]
    assert "of_the_child" not in server.reports[-1]["metrics"]


def test_a_subprocess_of_the_leading_process_reports_nothing(server: ReportServer, programs: Programs) -> None:
    start = "from mldiagnostics import machinelearning_run; machinelearning_run('job').close()"
    ended = programs.run(
        program(f"import subprocess\nsubprocess.run([sys.executable, '-c', {start!r}], check=True)\nrun.close()"),
        env=server.variables | pod(0),
    )
    assert ended.code == 0, ended.err
    assert len({report["incarnation"] for report in server.reports}) == 1
    assert server.reports[-1]["phase"] == "Completed"


def test_a_misbehaving_server_gets_everything_in_the_end(server: ReportServer, programs: Programs) -> None:
    soon = {"Retry-After": "0"}
    faults = [Answer(status, headers=soon) for status in (401, 403, 404, 429, 500, 503)]
    server.answers += [None, Answer(), Answer(), None, Answer(200, b"garbage"), None, *faults, None, Answer(400)]
    server.lost_events = 40
    source = program("print('ran', flush=True)\nthreading.Event().wait()")
    with programs.started(source, env=server.variables) as child:
        child.says("ran")
        eventually(lambda: not server.answers and not server.lost_events and len(server.events()) >= 300)
        child.process.terminate()
        ended = child.end()
    assert ended.code == -15
    assert server.reports[-1]["phase"] == "Failed"
    assert server.reports[0]["phase"] == "Active"
    assert "configs" in server.reports[0]
    assert "configs" not in server.reports[-1]  # they are persisted
    assert events(server) == events_of_the_log(programs)
    counted = {"unreachable": 1, "answer": 1, "denied": 2, "not-found": 1, "busy": 3, "rejected": 1}
    complaints = programs.the_run().document["complaints"]
    assert {key.removeprefix("control-plane-"): number for key, number in complaints.items()} == counted
    assert ended.err.count("control plane https://") == len(counted), ended.err


def test_reports_wait_for_a_server_that_is_away(programs: Programs, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with report_server(tmp_path / "control") as closed:
        env = closed.variables | {"MLDIAG_CONTROL_PLANE_URL": f"https://127.0.0.1:{port}"}
    with programs.started(program(AFTER_A_WARNING), env=env) as child:
        child.says("warned")
        with report_server(tmp_path / "control", port=port) as server:
            eventually(lambda: len(server.events()) >= 300)
            child.process.terminate()
            ended = child.end()
            assert server.reports[-1]["phase"] == "Failed"
            assert events(server) == events_of_the_log(programs)
    [warning] = [line for line in ended.err.splitlines() if line.startswith("control plane ")]
    assert "it cannot be reached" in warning


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "https://control.invalid:8443"])
def test_a_server_that_never_comes_costs_two_warnings(programs: Programs, url: str) -> None:
    token = programs.folder / "token"
    token.write_text("token")
    ended = programs.run(
        program("run.close()"), env={"MLDIAG_CONTROL_PLANE_URL": url, "MLDIAG_CONTROL_PLANE_TOKEN_FILE": str(token)}
    )
    assert ended.code == 0
    reached, end = (line for line in ended.err.splitlines() if line.startswith("control plane "))
    assert "it cannot be reached" in reached
    assert "did not confirm the end of this run in time; run.json has it" in end
    assert programs.the_run().phase == "Completed"


def test_the_server_of_googles_sdk_is_left_alone_if_it_has_no_reports(programs: Programs, tmp_path: Path) -> None:
    with report_server(tmp_path / "peer", tls=False) as peer:
        peer.answers.append(Answer(404))
        ended = programs.run(program("run.close()"), env={"DIAGON_BASE_URL": peer.url})
    assert ended.code == 0
    [warning] = [line for line in ended.err.splitlines() if "DIAGON_BASE_URL" in line]
    assert warning.startswith(f"DIAGON_BASE_URL={peer.url}: does not accept reports of mldiagnostics")
    assert "set MLDIAG_CONTROL_PLANE_URL" in warning
    assert peer.reports == []
    assert peer.refused == [404]


def test_an_argument_wins_over_the_environment(server: ReportServer, programs: Programs) -> None:
    env = server.variables | {"MLDIAG_CONTROL_PLANE_URL": "https://127.0.0.1:1"}
    source = f"""
    from mldiagnostics import machinelearning_run
    with machinelearning_run("job", base_url="{server.url}/") as run:
        print(run.control_plane_url)
    """
    ended = programs.run(source, env=env)
    assert (ended.code, ended.out) == (0, f"{server.url}\n"), ended.err
    assert server.reports[-1]["phase"] == "Completed"


@pytest.mark.parametrize("strict", [False, True])
def test_an_invalid_url_is_one_warning_or_an_error(programs: Programs, *, strict: bool) -> None:
    start = f"machinelearning_run('job', base_url='control:1', strict={strict})"
    ended = programs.run(f"from mldiagnostics import machinelearning_run\n{start}")
    assert ended.code == (1 if strict else 0)
    words = "machinelearning_run(base_url='control:1') is not the URL of a control plane"
    assert ended.err.count(words) == 1


def test_nothing_is_loaded_without_a_control_plane(programs: Programs) -> None:
    loaded = (
        "print(sorted(name for name in sys.modules if name.startswith('mldiagnostics.control_plane') or name == 'ssl'))"
    )
    ended = programs.run(program(f"run.close()\n{loaded}"))
    assert (ended.code, ended.out) == (0, "[]\n"), ended.err


class _Listener(History):
    """Keeps the events of a log as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        self.events.append(event)

    def extend(self, times: array[int], codes: bytes, args: array[int], *, rank: int = 0, run: str = "") -> None:
        columns = zip(times, codes, args, strict=True)
        self.events += [Event(t, EventCode(code), arg, rank, run) for t, code, arg in columns]


def events_of_the_log(programs: Programs) -> list[Event]:
    """Return the goodput events of the run's own log."""
    listener = _Listener()
    LocalLog(programs.the_run().directory).read_new(listener, dt.datetime.now(dt.timezone.utc))
    return sorted(listener.events, key=str)


def events(server: ReportServer) -> list[Event]:
    """Return the reported goodput events."""
    return sorted(server.events(), key=str)
