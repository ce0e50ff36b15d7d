"""All ways in which a process ends, and the recorded phase."""

from __future__ import annotations

import signal
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import attempt_rows, list_runs, ranks_of, read_records
from support.programs import environments
from support.programs.processes import eventually

if TYPE_CHECKING:
    from support.programs.processes import Programs

BEGIN = """
import os, signal, sys, threading, time
from mldiagnostics import machinelearning_run, metrics, RunPhase
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
run = machinelearning_run("job", log_system_metrics=False)
metrics.record("loss", 0.5, step=1)
"""
WAIT = """
print("ready", flush=True)
time.sleep(600)
"""
IN_A_THREAD = """
thread = threading.Thread(target=lambda: 1 / 0, name="loader")
thread.start()
thread.join()
"""
CAUGHT = """
try:
    sys.exit(1)
except SystemExit:
    pass
"""

CONFIGURED = "run.configs.update({'eval': {'x' * 5000: 1.0, 'deep': __import__('json').loads('[' * 90 + ']' * 90)}})"
WRITTEN = "while not os.path.exists(run.directory + '/run.json'): time.sleep(0.01)\n"
INTERRUPTED = f"""
{WRITTEN}  # Python forgets that it was interrupted when a module with a dataclass is imported after that, by a thread
while "device_type" not in open(run.directory + "/run.json").read(): time.sleep(0.01)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""

ENDINGS = {
    "normal": ("", 0, "Completed", ""),
    "closed": ("run.close()", 0, "Completed", ""),
    "exit 0": ("sys.exit(0)", 0, "Completed", ""),
    "exit none": ("sys.exit()", 0, "Completed", ""),
    "exit false": ("sys.exit(False)", 0, "Completed", ""),
    "exit 1": ("sys.exit(1)", 1, "Failed", "ExitCode"),
    "exit text": ("sys.exit('no data')", 1, "Failed", "ExitCode"),
    "exit of site": ("exit(3)", 3, "Failed", "ExitCode"),
    "exit imported later": ("from sys import exit as leave; leave(4)", 4, "Failed", "ExitCode"),
    "exit caught": (CAUGHT, 0, "Completed", ""),
    "exit in a thread": ("threading.Thread(target=sys.exit, args=(1,)).start()", 0, "Completed", ""),
    "exception": ("raise ValueError('bad\\nnews')", 1, "Failed", "UncaughtException"),
    "exception in a thread": (IN_A_THREAD, 0, "Failed", "UncaughtExceptionInThread"),
    "interrupt": (INTERRUPTED, -2, "Failed", "Interrupted"),
    "exception, hook replaced": ("sys.excepthook = print; raise ValueError('bad')", 1, "Failed", "UncaughtException"),
    "exception in a thread, hook replaced": (
        f"threading.excepthook = print{IN_A_THREAD}",
        0,
        "Failed",
        "UncaughtExceptionInThread",
    ),
    "exit raised": ("raise SystemExit(1)", 1, "Failed", "ExitCode"),
    "exit raised, 0": (f"{CAUGHT}\nraise SystemExit(0)", 0, "Completed", ""),
    "exit raised, computed": ("raise SystemExit(len('x'))", 1, "Failed", "ExitCode"),
    "exit raised, computed 0": ("raise SystemExit(len(''))", 0, "Completed", ""),
    "exit raised, text": ("raise SystemExit('no data'.upper())", 1, "Failed", "ExitCode"),
    "exit raised, variable": ("status = len('ab'); raise SystemExit(status)", 2, "Failed", "ExitCode"),
    "exit raised, in a function": ("def main(): raise SystemExit(5)\nmain()", 5, "Failed", "ExitCode"),
    "exit raised, after a close": ("run.close(); raise SystemExit(len('x'))", 1, "Completed", ""),
    "with": ("with run: pass", 0, "Completed", ""),
    "with, exception": ("with run: 1 / 0", 1, "Failed", "UncaughtException"),
    "with, exit": ("with run: sys.exit(2)", 2, "Failed", "ExitCode"),
    "with, exit raised": ("with run: raise SystemExit(2)", 2, "Failed", "ExitCode"),
    "with, left early": (
        "def steps():\n with run: yield\nsome = steps(); next(some); some.close()",
        0,
        "Completed",
        "",
    ),
    "finally": ("try: 1 / 0\nfinally: run.close()", 1, "Failed", "UncaughtException"),
    "end of data": ("try: next(iter(()))\nexcept StopIteration: run.close()", 0, "Completed", ""),
    "said failed": ("run.close(RunPhase.PHASE_FAILED)", 0, "Failed", "ClosedByProgram"),
    "said completed": ("run.close('Completed'); sys.exit(1)", 1, "Completed", "ClosedByProgram"),
    "said nonsense": ("run.close('fine')", 0, "Completed", ""),
    "unreadable configuration": (f"{CONFIGURED}; run.close()", 0, "Completed", ""),
    "unreadable configuration, sigterm": (
        f"{CONFIGURED}; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        -15,
        "Failed",
        "Terminated",
    ),
    "sigterm": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15, "Failed", "Terminated"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_phase_is_right(programs: Programs, ending: str) -> None:
    statement, code, phase, reason = ENDINGS[ending]
    ended = programs.run(f"{BEGIN}\n{statement}\n")
    row = programs.the_run()
    assert (ended.code, row.phase, row.reason) == (code, phase, reason), ended.err
    assert row.ended is not None
    [rank] = ranks_of(programs.storage, row.run_id)
    assert (rank.phase, rank.reason) == (phase, reason)
    metrics = [(record.name, record.value) for record in read_records(programs.storage, row.run_id, kinds={"metric"})]
    assert metrics == [("loss", 0.5)]


def test_a_computed_status_is_that_of_each_attempt(programs: Programs) -> None:
    env = {"MLDIAG_RUN_ID": "shared"}
    for status in ("xx", "", "xxx"):
        programs.run(f"{BEGIN}\nraise SystemExit(len({status!r}))\n", env=env)
    row = programs.the_run()
    attempts = [(attempt.phase, attempt.reason, attempt.message) for attempt in attempt_rows(row)]
    ended = "the program ended with status"
    assert attempts == [
        ("Failed", "ExitCode", f"{ended} 2"), ("Completed", "", ""), ("Failed", "ExitCode", f"{ended} 3"),
    ]  # fmt: skip


def test_a_status_that_cannot_be_left_is_unknown_in_words(programs: Programs) -> None:
    without = "import ctypes; ctypes.CDLL = lambda _: ctypes"  # as a C library without `on_exit`
    ended = programs.run(f"{BEGIN}\n{without}\nraise SystemExit(len('x'))\n")
    row = programs.the_run()
    assert (ended.code, row.phase, row.reason) == (1, "Completed", "ExitCodeUnknown"), ended.err
    assert "computed status, which is unknown" in row.message


def test_exceptions_keep_the_traceback_that_python_prints(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nraise ValueError('bad news')\n")
    assert ended.err.count("ValueError: bad news") == 1
    assert programs.the_run().message == "ValueError: bad news"


HIDDEN = {
    "exception": "raise OSError(f'{url}: {token}')",
    "exception in a thread": "threading.Thread(target=lambda: open(url + token)).start()",
    "exit": "sys.exit(f'no data at {url}: {token}')",
}


@pytest.mark.parametrize("ending", HIDDEN)
def test_no_secret_of_a_message_is_stored(programs: Programs, ending: str) -> None:
    secrets = "url, token = 'https://me:hush@host/file?sig=husht', 'hf_' + 'Hush' * 9"
    programs.run(f"{BEGIN}\n{secrets}\n{HIDDEN[ending]}\n")
    assert "<secret>" in programs.the_run().message
    files = [file.read_text() for file in Path(programs.storage).rglob("*") if file.is_file()]
    assert len(files) > 1
    assert not [text for text in files if "hush" in text.lower()]


@pytest.mark.parametrize("statement", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "os.abort()"])
def test_a_run_that_is_killed_is_active_until_it_was_silent_for_three_intervals(
    programs: Programs, statement: str
) -> None:
    ended = programs.run(f"{BEGIN}\n{WRITTEN}\n{statement}\n")
    assert ended.code != 0
    beaten = programs.the_run().heartbeat
    assert beaten is not None
    assert programs.the_run(now=beaten + 29).phase == "Active"
    lost = programs.the_run(now=beaten + 31)
    assert (lost.phase, lost.reason, lost.ended) == ("Failed", "Lost", beaten)


def test_a_living_run_shows_it(programs: Programs) -> None:
    with programs.started(BEGIN + WAIT, env={"MLDIAG_HEARTBEAT_SECONDS": "0.2"}) as child:
        child.says("ready")
        eventually(lambda: list_runs(programs.storage))
        first = programs.the_run().heartbeat
        assert first is not None
        eventually(lambda: (programs.the_run().heartbeat or 0) > first)
        child.process.kill()
        child.end()
    eventually(lambda: programs.the_run(now=time.time()).reason == "Lost")


HANDLER = """
import os, signal, sys, time
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
def save(number, frame):
    metrics.record("saved", 1.0)
    os.write(1, b"saved\\n")  # the signal may interrupt a print
    exec(sys.argv[1])
signal.signal(signal.SIGTERM, save)
run = machinelearning_run("job", log_system_metrics=False)
"""
LOOP = """
print("ready", flush=True)
while time.sleep is not print:
    time.sleep(0.01)
"""


HANDLED = {
    "exit 0": ("sys.exit(0)", 0, "Completed", "", ""),
    "exit 1": ("sys.exit(143)", 143, "Failed", "Terminated", "the program ended by sys.exit(143) after SIGTERM"),
    "raises": ("raise KeyError('x')", 1, "Failed", "UncaughtException", "KeyError: 'x'"),
    "closes": ("run.close(); os._exit(0)", 0, "Completed", "", ""),
    "stops": ("global time; time = type('', (), {'sleep': print})", 0, "Completed", "", ""),
}


@pytest.mark.parametrize("how", HANDLED)
def test_after_the_programs_own_handler_of_sigterm_its_exit_decides(programs: Programs, how: str) -> None:
    act, code, *verdict = HANDLED[how]
    with programs.started(HANDLER + LOOP, act) as child:
        child.says("ready")
        child.process.send_signal(signal.SIGTERM)
        ended = child.end()
    row = programs.the_run()
    assert (ended.code, ended.out.splitlines()[0]) == (code, "saved"), ended.err
    assert [row.phase, row.reason, row.message] == verdict
    assert row.ended is not None
    [rank] = ranks_of(programs.storage, row.run_id)
    assert [rank.phase, rank.reason, rank.message] == verdict
    assert [r.name for r in read_records(programs.storage, row.run_id, kinds={"metric"})] == ["saved"]


def test_a_program_that_is_killed_while_it_deals_with_sigterm_was_terminated(programs: Programs) -> None:
    with programs.started(HANDLER + LOOP, "signal.pause()") as child:
        child.says("ready")
        child.process.send_signal(signal.SIGTERM)
        child.says("saved")
        row = programs.the_run()
        assert (row.phase, row.reason, row.ended) == ("Active", "Terminating", None)
        child.process.kill()
        child.end()
    beaten = programs.the_run().heartbeat
    assert beaten is not None
    row = programs.the_run(now=beaten + 31)
    assert (row.phase, row.reason) == ("Failed", "Terminated")
    [rank] = ranks_of(programs.storage, row.run_id, now=beaten + 60)
    assert (rank.phase, rank.reason) == ("Failed", "Terminated")


IGNORED = """
import os, signal, time
from mldiagnostics import machinelearning_run
signal.signal(signal.SIGTERM, signal.SIG_IGN)
run = machinelearning_run("job", log_system_metrics=False)
os.kill(os.getpid(), signal.SIGTERM)
assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
"""


def test_sigterm_that_is_ignored_stays_ignored(programs: Programs) -> None:
    ended = programs.run(IGNORED)
    assert (ended.code, programs.the_run().phase) == (0, "Completed"), ended.err


def test_closing_puts_the_handler_of_sigterm_back(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nrun.close()\nassert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n")
    assert ended.code == 0, ended.err


def test_a_run_started_in_a_thread_leaves_signals_alone(programs: Programs) -> None:
    source = """
        import signal, threading
        from mldiagnostics import machinelearning_run
        thread = threading.Thread(target=machinelearning_run, args=("job",))
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    """
    ended = programs.run(source)
    assert (ended.code, programs.the_run().phase) == (0, "Completed"), ended.err


FORK = """
from mldiagnostics.pipeline import recorder
recorder._SIGNAL_TIMEOUT_S = 60
pid = os.fork()
if pid == 0:
    metrics.record("in the child", 1.0)
    {child}
assert os.waitpid(pid, 0)[1] == {status}
assert run.run_phase is RunPhase.PHASE_ACTIVE
"""


@pytest.mark.parametrize(
    ("child", "status"),
    [
        ("sys.exit(1)", 256),
        ("1 / 0", 256),
        ("run.close(); sys.exit(0)", 0),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", 15),
        ("os._exit(0)", 0),
    ],
)
def test_the_phase_is_the_parents_and_a_forked_child_only_records(programs: Programs, child: str, status: int) -> None:
    ended = programs.run(BEGIN + FORK.format(child=child, status=status))
    row = programs.the_run()
    assert (ended.code, row.phase, row.reason) == (0, "Completed", ""), ended.err
    if "_exit" not in child:
        names = {record.name for record in read_records(programs.storage, row.run_id, kinds={"metric"})}
        assert names == {"loss", "in the child"}


POOL = """
import multiprocessing, sys
from mldiagnostics import machinelearning_run, metrics

def train(fail):
    machinelearning_run("child", log_system_metrics=False)
    metrics.record("loss", 1.0)
    if fail:
        raise ValueError("no data")

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    child = context.Process(target=train, args=(sys.argv[2] == "fails",))
    child.start()
    child.join()
"""


def test_a_forked_child_dies_of_sigterm_also_while_it_runs_no_python(programs: Programs) -> None:
    source = """
from mldiagnostics import machinelearning_run
import os, signal, time
machinelearning_run("job")
ready, begun = os.pipe()
child = os.fork()
if not child:
    os.write(begun, b".")
    sum(range(10**15))
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
deadline = time.monotonic() + 30
while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
    time.sleep(0.01)
if not ended[0]:
    os.kill(child, signal.SIGKILL)
print(ended[1])
"""
    ended = programs.run(source)
    assert (ended.code, ended.out) == (0, f"{signal.SIGTERM:d}\n"), ended.err


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(("how", "phase"), [("fails", "Failed"), ("ends", "Completed")])
def test_a_run_of_a_child_of_multiprocessing_ends_with_it(
    programs: Programs, method: str, how: str, phase: str
) -> None:
    ended = programs.run(POOL, method, how)
    row = programs.the_run()
    assert (ended.code, row.name, row.phase) == (0, "child", phase), ended.err
    assert len(list(read_records(programs.storage, row.run_id, kinds={"metric"}))) == 1


SUBPROCESS = """
import subprocess
child = '''
from mldiagnostics import machinelearning_run, metrics
run = machinelearning_run("job", log_system_metrics=False)
metrics.record("in the child", 1.0)
raise SystemExit(1)
'''
subprocess.run([sys.executable, "-c", child])
"""


def test_a_subprocess_that_joins_the_run_does_not_speak_for_it(programs: Programs) -> None:
    env = {"MLDIAG_RUN_ID": "shared", "MLDIAG_RANK": "0"}
    ended = programs.run(BEGIN + SUBPROCESS + "sys.exit(5)", env=env)
    row = programs.the_run()
    assert (ended.code, row.phase, row.message) == (5, "Failed", "the program ended by sys.exit(5)")
    names = [record.name for record in read_records(programs.storage, "shared", kinds={"metric"})]
    assert sorted(names) == ["in the child", "loss"]


def test_a_subprocess_speaks_for_the_run_once_its_parent_has_closed_it(programs: Programs) -> None:
    child = SUBPROCESS.replace("raise SystemExit(1)", "run.close('Failed')")
    ended = programs.run(f"{BEGIN}\nrun.close()\n{child}", env={"MLDIAG_RUN_ID": "shared"})
    assert (ended.code, programs.the_run().phase) == (0, "Failed"), ended.err


def test_the_end_of_one_run_is_not_that_of_the_next(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}{IN_A_THREAD}\nrun.close()\nmachinelearning_run('second')\n")
    phases = {row.name: row.phase for row in list_runs(programs.storage)}
    assert (ended.code, phases) == (0, {"job": "Failed", "second": "Completed"}), ended.err


def test_hooks_of_others_are_called_as_before(programs: Programs) -> None:
    source = """
        import atexit, sys, threading
        seen = []
        sys.excepthook = lambda *_: seen.append("main")
        threading.excepthook = lambda _: seen.append("thread")
        atexit.register(lambda: print(*seen))
        from mldiagnostics import machinelearning_run
        for _ in range(3):
            machinelearning_run("job")
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        1 / 0
    """
    ended = programs.run(source)
    assert (ended.code, ended.out) == (1, "thread main\n"), ended.err


def test_a_signal_after_the_end_changes_no_phase(programs: Programs) -> None:
    """Its own handler may get SIGTERM while the last records are delivered."""
    close = "recording_close = run.recording.close\n"
    close += "def closing_late(timeout_s):\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    close += "    return recording_close(timeout_s)\n"
    ended = programs.run(f"{HANDLER}{close}run.recording.close = closing_late\nrun.close()\n", "")
    row = programs.the_run()
    assert (ended.code, ended.out, row.phase, row.reason) == (0, "saved\n", "Completed", ""), ended.err
    assert [r.name for r in read_records(programs.storage, row.run_id, kinds={"phase"})][-1] == "Completed"


def test_a_signal_waits_for_a_thread_that_closes_the_run(programs: Programs) -> None:
    close = "recording_close = run.recording.close\n"
    close += "def closing_late(timeout_s):\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(0.5)\n"
    close += "    return recording_close(timeout_s)\nrun.recording.close = closing_late\n"
    close += "thread = threading.Thread(target=run.close)\nthread.start()\nthread.join()\n"
    ended = programs.run(f"{BEGIN}{close}")
    row = programs.the_run()
    assert (ended.code, row.phase) == (-signal.SIGTERM, "Completed"), ended.err
    assert len(list(read_records(programs.storage, row.run_id, kinds={"metric"}))) == 1


def test_a_signal_while_the_run_is_closed_waits_until_everything_is_written(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nrun.on_close(lambda: os.kill(os.getpid(), signal.SIGTERM))\nrun.close()\n")
    row = programs.the_run()
    assert (ended.code, row.phase, row.reason) == (-signal.SIGTERM, "Failed", "Terminated"), ended.err
    assert len(list(read_records(programs.storage, row.run_id, kinds={"metric"}))) == 1


NOTEBOOK = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3", startup_timeout=120)
cells = [
    "import sys; from mldiagnostics import machinelearning_run",
    "run = machinelearning_run('cells', log_system_metrics=False)",
    "1 / 0",
    "sys.exit(1)",
    "run.step(7); print(run.run_phase.value)",
]
for cell in cells:
    answer = client.execute_interactive(cell, timeout=120, allow_stdin=False)
    print(answer["content"]["status"], flush=True)
manager.shutdown_kernel()
"""


@pytest.mark.peers
def test_a_cell_that_fails_is_not_the_end_of_a_notebook(programs: Programs) -> None:
    try:
        python = str(environments.interpreter("notebook"))
    except environments.Unavailable as error:
        pytest.skip(f"no environment notebook: {error}")
    ended = replace(programs, python=python).run(NOTEBOOK)
    words = [line for line in ended.out.splitlines() if line in {"ok", "error", "ACTIVE"}]
    assert words == ["ok", "ok", "error", "error", "ACTIVE", "ok"], ended
    eventually(lambda: programs.the_run().phase != "Active")
    row = programs.the_run()
    assert (row.phase, row.reason, row.step) == ("Completed", "", 7)


PREEMPTED = """
import os, signal, sys, time
import jax
from jax.experimental import multihost_utils
from mldiagnostics import machinelearning_run

def initialise():
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", num_processes=1, process_id=0)

if sys.argv[2] == "jax first":
    initialise()
run = machinelearning_run("job", log_system_metrics=False)
if sys.argv[2] == "run first":
    initialise()
os.kill(os.getpid(), signal.SIGTERM)
deadline, step = time.monotonic() + 100, 0
while not multihost_utils.reached_preemption_sync_point(step) and time.monotonic() < deadline:
    time.sleep(0.05)
    step += 1
print("saved", flush=True)
"""


@pytest.mark.peers
@pytest.mark.parametrize("order", ["jax first", "run first"])
def test_jax_keeps_sigterm_for_its_checkpoint_and_the_run_was_preempted(programs: Programs, order: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    ended = programs.run(PREEMPTED, port, order, env={"JAX_PLATFORMS": "cpu"})
    row = programs.the_run()
    assert (ended.code, ended.out) == (0, "saved\n"), ended.err
    assert (row.phase, row.reason) == ("Failed", "Preempted")
