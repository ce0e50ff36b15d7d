"""The end of a monitored program: its last upload, and no process that stays."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from support.goodput.monitors import alive, last, monitors_of
from support.programs.processes import Programs, eventually

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = """
import os, sys, time
from mldiagnostics.goodput import GoodputRecorder
from mldiagnostics.goodput_utils import GCPOptions
from mldiagnostics.monitoring import GoodputMonitor

recorder = GoodputRecorder("job", "goodput_job", True)
monitor = GoodputMonitor(
    "job", "goodput_job", "tb", 3600, True, cache_dir="cache", final_flush_timeout_seconds=60,
    gcp_options=GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False),
)
recorder.record_job_start_time()
for step in range(5):
    recorder.record_step_start_time(step)
"""


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_a_program_that_is_not_monitored_loads_and_starts_nothing(programs: Programs) -> None:
    done = programs.run("""
        import sys
        from mldiagnostics.monitoring import GoodputMonitor
        from mldiagnostics.monitoring_elastic import ElasticGoodputMonitor
        for kind in (GoodputMonitor, ElasticGoodputMonitor):
            monitor = kind("job", "goodput_job", "tb", 0.1, include_step_deviation=True)
            monitor.start_goodput_uploader()
            monitor.start_step_deviation_uploader()
            monitor.start_rolling_window_goodput_uploader([60])
            monitor.stop_goodput_uploader()
            monitor.stop_step_deviation_uploader()
            monitor.stop_rolling_window_goodput_uploader()
        kind("job", "goodput_job", "tb", 0.1, monitoring_enabled=True)
        print(*(name for name in ("subprocess", "socket", "mldiagnostics.goodput.monitor") if name in sys.modules))
    """)
    assert (done.code, done.out.strip(), done.err) == (0, "", "")
    assert not (programs.folder / "tb").exists()


def test_a_program_that_is_monitored_computes_nothing_itself(programs: Programs) -> None:
    done = programs.run(
        BEGIN
        + """
monitor.start_goodput_uploader()
recorder.record_job_end_time()
monitor.stop_goodput_uploader()
heavy = ("goodput.ledger", "goodput.history", "goodput.exports", "goodput.report", "goodput.log.jsonl")
print(*(name for name in sys.modules if name.startswith(tuple(f"mldiagnostics.{part}" for part in heavy))))
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"tensorboard", "google", "grpc", "numpy"}))
"""
    )
    assert (done.code, done.out.split()) == (0, []), done.err
    assert last(programs.folder / "tb") is not None


def test_a_program_that_stops_nothing_uploads_a_last_time_at_its_end(programs: Programs) -> None:
    done = programs.run(BEGIN + "monitor.start_goodput_uploader()\nrecorder.record_step_start_time(5)")
    assert done.code == 0, done.err
    assert last(programs.folder / "tb")[0] == 4  # type: ignore[index]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_is_killed_is_uploaded_by_its_monitor(programs: Programs, end: signal.Signals) -> None:
    with programs.started(
        BEGIN
        + """
monitor.start_goodput_uploader()
recorder.flush()
print("begun", flush=True)
time.sleep(600)
"""
    ) as child:
        child.says("begun")
        [pid] = monitors_of(child.process.pid)
        child.process.send_signal(end)
        child.process.wait()
        eventually(lambda: not alive(pid))
    assert last(programs.folder / "tb")[0] == 3  # type: ignore[index]


def test_a_monitor_that_hangs_does_not_outlive_its_parent_for_long(programs: Programs) -> None:
    """The watchdog is in a thread that needs no interpreter; here its timeout is short."""
    with programs.started(
        """
        import os, socket, subprocess, sys, time
        ours, theirs = socket.socketpair()
        program = (
            "import time, mldiagnostics.goodput.monitor.__main__ as monitor; "
            "monitor._EXIT_GRACE_S = 0.1; monitor._serve = lambda *_: time.sleep(600); monitor.main()"
        )
        child = subprocess.Popen([sys.executable, "-c", program], stdin=theirs.fileno(), stdout=theirs.fileno())
        theirs.close()
        from mldiagnostics.goodput.monitor.assignment import Assignment, line
        ours.send(line(Assignment("job", "logger", "log", flush_s=None).to_json()))
        print(child.pid, flush=True)
        print("begun", flush=True)
        time.sleep(600)
        """
    ) as child:
        assert child.process.stdout is not None
        pid = int(child.process.stdout.readline())
        child.says("begun")
        assert alive(pid)
        child.process.kill()
        eventually(lambda: not alive(pid))


def test_forked_children_do_not_stop_or_keep_the_monitor(programs: Programs) -> None:
    with programs.started(
        BEGIN
        + """
monitor.start_goodput_uploader()
recorder.flush()
child = os.fork()
if child == 0:
    monitor.stop_goodput_uploader()
    monitor.start_goodput_uploader()
    monitor.stop_goodput_uploader(skip_final_flush=True)
    print("child is done", flush=True)
    time.sleep(600)
brief = os.fork()
if brief == 0:
    sys.exit(0)
os.waitpid(brief, 0)
print(child, flush=True)
print("begun", flush=True)
time.sleep(600)
"""
    ) as child:
        assert child.process.stdout is not None
        lines = {child.process.stdout.readline().strip() for _ in range(3)}
        [forked] = [int(text) for text in lines if text.isdecimal()]
        assert lines == {str(forked), "begun", "child is done"}
        [pid] = monitors_of(child.process.pid)
        assert last(programs.folder / "tb") is None
        child.process.kill()
        child.process.wait()
        eventually(lambda: not alive(pid))
        assert alive(forked)
        os.kill(forked, signal.SIGKILL)
    assert last(programs.folder / "tb")[0] == 3  # type: ignore[index]


def test_a_program_whose_directory_shadows_modules_is_monitored(programs: Programs) -> None:
    (programs.folder / "cwd").mkdir()
    (programs.folder / "cwd" / "json.py").write_text("raise SystemExit('not this one')")
    done = programs.run(
        "import os\nos.chdir('cwd')\n" + BEGIN + "recorder.record_job_end_time()\nmonitor.stop_goodput_uploader()"
    )
    assert done.code == 0, done.err
    assert last(programs.folder / "cwd/tb") is not None


def test_output_of_a_site_at_start_is_not_read_as_messages(programs: Programs) -> None:
    (programs.folder / "sitecustomize.py").write_text("import sys\nsys.stdout.write('hello')\nsys.stdout.flush()\n")
    done = programs.run(
        BEGIN + "recorder.record_job_end_time()\nmonitor.stop_goodput_uploader()",
        env={"PYTHONPATH": str(programs.folder)},
    )
    assert (done.code, done.out, done.err) == (0, "hello", "")
    assert last(programs.folder / "tb") is not None


@pytest.mark.peers
def test_with_jax_it_takes_no_device_and_does_not_warn(programs: Programs) -> None:
    done = Programs(programs.folder, options=("-W", "error")).run(
        """
import jax, jax.numpy as jnp
train = jax.jit(lambda x: x @ x.T)
state = train(jnp.ones((64, 64))).block_until_ready()
"""
        + BEGIN
        + """
monitor.start_goodput_uploader()
for number in range(5, 10):
    state = train(state)
    recorder.record_step_start_time(number)
recorder.record_job_end_time()
monitor.stop_goodput_uploader()
""",
        env={"JAX_PLATFORMS": "cpu"},
    )
    assert (done.code, done.err) == (0, "")
    assert last(programs.folder / "tb")[0] == 9  # type: ignore[index]


def test_a_broken_pipe_of_the_monitor_does_not_end_the_program(programs: Programs) -> None:
    done = programs.run(
        """
import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
"""
        + BEGIN
        + """
from mldiagnostics.goodput.monitor.process import MonitorProcess
process = MonitorProcess(on_message=print, on_end=lambda *_: time.sleep(600))  # holds the socket open
os.kill(process.pid, signal.SIGKILL)
process.stop(60)
process.send({"do": "start"})
assert process.request({"do": "stop"}, 0.1) not in (True, False)
print("alive")
"""
    )
    assert (done.code, done.out.split()) == (0, ["alive"]), done.err
