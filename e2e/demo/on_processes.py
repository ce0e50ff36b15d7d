"""Demo without Kubernetes: the same training program as two local processes."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.health import free_ports
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, step, tail
from mldiagnostics.capture import Outcome, TargetState, capture
from rich.console import Console

from demo import show
from demo.kubectl import eventually

HOSTS = 2
DURATION_MS = 2000
PYTHON = REPOSITORY / ".venv/bin/python"
TRAINING_DEADLINE_S = 120
GOODPUT_DEADLINE_S = 30


def run(console: Console, output: Path) -> None:
    """Train in two local processes, capture both at the same time, show the result.

    Raises:
        ClusterError: the job does not train, or a process was not captured.
    """
    runs = output / "runs"
    earlier = set(runs.glob("*"))
    with (
        tempfile.TemporaryDirectory(prefix="mldiagnostics-demo-") as folder,
        training(Path(folder), runs) as addresses,
    ):
        call = f"capture({addresses}, duration_ms={DURATION_MS}, storage={str(output)!r})"
        console.print(f"\n>>> {call}\n", soft_wrap=True, highlight=False)
        report = capture(addresses, duration_ms=DURATION_MS, storage=str(output))
        [own] = set(runs.glob("*")) - earlier
        recorded = _printed("mldiagnostics.runs", runs, own.name)
        account = eventually(lambda: _account(own), "an account of the run's time", deadline_s=GOODPUT_DEADLINE_S)
    show.hosts(console, [_host(rank, outcome) for rank, outcome in enumerate(report.outcomes)])
    if failed := [outcome for outcome in report.outcomes if outcome.state is not TargetState.CAPTURED]:
        raise ClusterError("; ".join(f"{outcome.target.address}: {outcome.message}" for outcome in failed))
    show.reading(console, output, report.session)
    show.how_to_open(console, output)
    show.recorded(console, recorded, f"python -m mldiagnostics.runs {runs}")
    show.goodput(console, account, f"python -m mldiagnostics.goodput {own}")


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
    }
    program = REPOSITORY / "examples/jax-training/train.py"
    with log.open("wb") as output:
        return subprocess.Popen([PYTHON, program], env=environment, stdout=output, stderr=output)


def _account(run: Path) -> str:
    """Return the account of the run's time; empty before its first events are written."""
    try:
        return _printed("mldiagnostics.goodput", run)
    except subprocess.CalledProcessError:
        return ""


def _printed(module: str, *arguments: str | Path) -> str:
    command = [PYTHON, "-m", module, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _train(processes: list[subprocess.Popen[bytes]], logs: list[Path]) -> bool:
    """Return whether every process has reported a step; raise ClusterError if one has exited."""
    for process, log in zip(processes, logs, strict=True):
        if process.poll() is not None:
            raise ClusterError(f"a training process exited with status {process.returncode}:\n{tail(log.read_text())}")
    return all("\nstep " in log.read_text() for log in logs)


def _host(rank: int, outcome: Outcome) -> show.Host:
    return show.Host(
        name=outcome.target.address,
        rank=rank,
        node="local",
        size=outcome.bytes or 0,
        start_s=None if outcome.start_ns is None else outcome.start_ns / 1e9,
        reason=outcome.reason,
    )
