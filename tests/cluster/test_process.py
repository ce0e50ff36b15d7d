"""A pid file identifies one process; no other is ever signalled."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.process import Daemon, wait_until
from cluster.progress import ClusterError

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)

SHORT = """
import sys
from pathlib import Path
from cluster.process import Daemon
Daemon("short", run=Path(sys.argv[1]), logs=Path(sys.argv[1])).start(["true"])
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon("sleeper", run=tmp_path, logs=tmp_path)
    yield daemon
    daemon.stop(deadline_s=1)


def test_runs_until_it_is_stopped(daemon: Daemon) -> None:
    assert not daemon.running()
    assert daemon.pid is None
    daemon.start(["sleep", "60"])
    assert daemon.running()
    assert Path(f"/proc/{daemon.pid}/comm").read_text() == "sleep\n"
    daemon.stop()
    assert not daemon.running()
    assert daemon.pid is None
    assert not daemon.pid_file.exists()
    daemon.stop()


def test_another_process_finds_and_stops_it_by_its_pid_file(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start(["sleep", "60"])
    later = Daemon("sleeper", run=tmp_path, logs=tmp_path)
    assert later.running()
    later.stop()
    assert not daemon.running()


def test_a_killed_process_starts_again_after_the_block(daemon: Daemon) -> None:
    with pytest.raises(ClusterError, match="sleeper: not running"), daemon.killed():
        pass
    daemon.start(["sleep", "60"])
    with daemon.killed():
        assert not daemon.running()
    assert daemon.running()


def test_is_killed_if_it_does_not_exit(daemon: Daemon) -> None:
    daemon.start([sys.executable, "-c", STUBBORN])
    wait_until(
        lambda: "ready" in daemon.log.read_text(), "installation of the signal handler", deadline_s=120, needs=[daemon]
    )
    daemon.stop(deadline_s=0.2)
    assert not daemon.running()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda record: {"start_ticks": record["start_ticks"] + 1}, id="the pid was used again"),
        pytest.param(lambda _: {"boot": "another"}, id="the machine was rebooted"),
    ],
)
def test_a_stale_pid_file_never_stops_another_process(
    tmp_path: Path, changed: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    innocent = Daemon("innocent", run=tmp_path, logs=tmp_path)
    innocent.start(["sleep", "60"])
    try:
        record = json.loads(innocent.pid_file.read_text())
        (tmp_path / "stale.pid").write_text(json.dumps(record | changed(record)))
        stale = Daemon("stale", run=tmp_path, logs=tmp_path)
        assert not stale.running()
        stale.stop()
        assert innocent.running()
        assert not stale.pid_file.exists()
    finally:
        innocent.stop()


@pytest.mark.parametrize("content", ["", "17", "{", "[]"])
def test_an_invalid_pid_file_means_not_running(tmp_path: Path, content: str) -> None:
    (tmp_path / "torn.pid").write_text(content)
    torn = Daemon("torn", run=tmp_path, logs=tmp_path)
    assert not torn.running()
    torn.stop()
    assert not torn.pid_file.exists()


def test_a_zombie_is_not_running(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SHORT, str(tmp_path)]
    started = subprocess.run(command, check=False, cwd=Path(__file__).resolve().parents[2] / "e2e")
    assert started.returncode == 0
    short = Daemon("short", run=tmp_path, logs=tmp_path)
    wait_until(lambda: not short.running(), "it has ended", deadline_s=120)


def test_waiting_fails_at_once_if_a_needed_process_exits(daemon: Daemon) -> None:
    daemon.start([sys.executable, "-c", "raise SystemExit('no such flag: --frobnicate')"])
    with pytest.raises(ClusterError, match=r"sleeper exited[\s\S]*no such flag: --frobnicate"):
        wait_until(lambda: False, "it answers", deadline_s=60, needs=[daemon])


def test_waiting_ends_at_its_deadline(daemon: Daemon) -> None:
    daemon.start(["sleep", "60"])
    with pytest.raises(ClusterError, match="it answers: not within 0 s"):
        wait_until(lambda: False, "it answers", deadline_s=0, needs=[daemon])
