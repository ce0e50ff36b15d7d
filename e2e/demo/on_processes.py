"""Demo without Kubernetes: the same training program as two local processes."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cluster.paths import REPOSITORY
from cluster.ports import free_ports
from cluster.progress import ClusterError, step, tail
from rich.console import Console

from demo import show, viewing
from demo.command_line import mldiag, shown
from demo.kubectl import eventually

HOSTS = 2
SLOW_HOST, SLOW_INPUT_S = 1, 0.03
"""One host reads its input slowly, so that the capture has a verdict."""
RUNS = "runs"
DURATION_S = 2
PYTHON = REPOSITORY / ".venv/bin/python"
TRAINING_DEADLINE_S = 120
GOODPUT_DEADLINE_S = 30


def run(console: Console, output: Path) -> None:
    """Train in two local processes, capture both at the same time, show the result.

    Raises:
        ClusterError: the job does not train, or a process was not captured.
    """
    runs = output / RUNS
    earlier = set(runs.glob("*"))
    with (
        tempfile.TemporaryDirectory(prefix="mldiagnostics-demo-") as folder,
        viewing.view(runs) as view,
        training(Path(folder), runs) as addresses,
    ):
        session = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        where = ["--log-directory", str(output), "--session", session]
        captured = ["capture", *addresses, "--duration", f"{DURATION_S}s", "--no-diagnosis", *where]
        show.command(console, shown(captured), mldiag(captured))
        [own] = set(runs.glob("*")) - earlier
        recorded = ["runs", "get", own.name, "--storage", str(runs)]
        run_text = mldiag(recorded)
        account = ["goodput", str(own)]
        account_text = eventually(
            lambda: _account(account), "an account of the run's time", deadline_s=GOODPUT_DEADLINE_S
        )
        view.check(own.name)
    show.reading(console, output, session)
    show.how_to_open(console, output)
    show.command(console, shown(recorded), run_text)
    show.command(console, shown(account), account_text)
    diagnosed = ["diagnose", f"{output}/{session}"]
    show.command(console, shown(diagnosed), mldiag(diagnosed))


@contextmanager
def training(folder: Path, runs: Path) -> Iterator[list[str]]:
    """Run the training program as two processes; yield their profiler addresses once both train.

    Args:
        folder: Place of the logs.
        runs: Storage of the run.
    """
    coordinator, *ports = free_ports(1 + HOSTS)
    processes: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"training-{rank}.log" for rank in range(HOSTS)]
    try:
        with step("Starting two training processes", about_s=10):
            processes += [_process(rank, coordinator, port, logs[rank], runs) for rank, port in enumerate(ports)]
            eventually(lambda: _train(processes, logs), "training in both processes", deadline_s=TRAINING_DEADLINE_S)
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _process(rank: int, coordinator_port: int, profiler_port: int, log: Path, runs: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{coordinator_port}",
        "JAX_PROCESS_COUNT": str(HOSTS),
        "JAX_PROCESS_ID": str(rank),
        "MLDIAG_PROFILER_PORT": str(profiler_port),
        "MLDIAG_HEARTBEAT_SECONDS": "1",
        "MLDIAG_STORAGE": str(runs),
        "SLOW_INPUT_SECONDS": str(SLOW_INPUT_S if rank == SLOW_HOST else 0),
    }
    program = REPOSITORY / "examples/jax-training/train.py"
    with log.open("wb") as output:
        return subprocess.Popen([PYTHON, program], env=environment, stdout=output, stderr=output)


def _account(arguments: list[str]) -> str:
    """Return the account of the run's time; empty before its first events are written."""
    try:
        return mldiag(arguments)
    except ClusterError:
        return ""


def _train(processes: list[subprocess.Popen[bytes]], logs: list[Path]) -> bool:
    """Return whether every process has reported a step; raise ClusterError if one has exited."""
    for process, log in zip(processes, logs, strict=True):
        if process.poll() is not None:
            raise ClusterError(f"a training process exited with status {process.returncode}:\n{tail(log.read_text())}")
    return all("\nstep " in log.read_text() for log in logs)
