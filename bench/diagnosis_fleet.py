"""Processes of a JAX job that stay up while captures are made with other faults.

`python -m bench.diagnosis_fleet OPTIONS` runs in a network namespace of its own where the machine allows one, so that
the network of all processes can be made slow. It prints a line of JSON for each session.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from mldiagnostics.capture.api import prepare_capture
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.sessions import diagnose_session

from bench.diagnosis_faults import NETWORK, draw, judge
from bench.diagnosis_programs import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.diagnosis_faults import Session

SHORTEST_MS, LONGEST_MS = 1500, 6000
STEPS, OCCURRENCES = 20, 8
"""Steps that a capture has time for, with their faults, and at least so many of the steps of a rarer fault."""
LEAD_MS = 400
DEADLINE_S = 120
RATE = "300mbit"
"""Of the loopback interface in a session with a slow network."""


class Fleet:
    """The processes of one program."""

    def __init__(self, hosts: int, style: int, name: str, pauses_s: float) -> None:
        self.ports = _free_ports(hosts + 1)
        options = {
            "coordinator": f"127.0.0.1:{self.ports[-1]}", "hosts": hosts, "style": style, "name": name,
            "pauses_s": pauses_s,
        }  # fmt: skip
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        }
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.diagnosis_training", json.dumps(options | {"rank": rank, "port": port})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
            for rank, port in enumerate(self.ports[:-1])
        ]
        self.step_s = 0.05

    def measure(self) -> float:
        """Return the healthy time of a step."""
        self.step_s = self._set({"faults": [], "names": ["train", "load", "other"], "measure": True})
        return self.step_s

    def inject(self, session: Session) -> float:
        """Change the faults of all processes; return when all run with them."""
        return self._set(session.command())

    def stop(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _set(self, command: dict[str, Any]) -> float:
        line = json.dumps(command | {"step_s": self.step_s}) + "\n"
        for process in self._processes:
            assert process.stdin
            process.stdin.write(line)
            process.stdin.flush()
        return median(_answer(process) for process in self._processes)


def _answer(process: subprocess.Popen[str]) -> float:
    """Return the time of a step as a process says it; other lines are of its libraries."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith("{"):
            return float(json.loads(line)["step_s"])
    raise RuntimeError(f"a process of the job ended with code {process.wait()}")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def slow_network(*, is_slow: bool) -> Iterator[None]:
    """Limit the rate of the namespace's loopback interface while the block runs."""
    if not is_slow:
        yield
        return
    device = ["dev", "lo", "root"]
    subprocess.run(["tc", "qdisc", "add", *device, "tbf", "rate", RATE, "burst", "128kb", "limit", "20mb"], check=True)
    try:
        yield
    finally:
        subprocess.run(["tc", "qdisc", "del", *device], check=True)


def record(fleet: Fleet, session: Session, folder: Path) -> dict[str, Any]:
    """Capture and diagnose one session; return its line of the result."""
    start = time.monotonic()
    if session.faults:
        fleet.measure()  # other work on the machine makes steps longer or shorter
    step_s = max(fleet.inject(session), fleet.step_s)
    steps = max(STEPS, OCCURRENCES * max((fault.period for fault in session.faults), default=1))
    name = f"{session.scenario.replace(' ', '-')}-{session.seed}"
    addresses = [f"127.0.0.1:{port}" for port in fleet.ports[:-1]]
    prepared = prepare_capture(
        addresses,
        storage=str(folder),
        duration_ms=round(min(max(steps * step_s * 1000, SHORTEST_MS), LONGEST_MS)),
        session=name,
        start_lead_ms=LEAD_MS,
        stems=[f"host-{rank}" for rank in range(len(addresses))],
    )

    with slow_network(is_slow=session.scenario == NETWORK):
        asyncio.run(prepared.run())
    result = diagnose_session(open_store(str(folder)), name)
    ranks = [f"host-{rank}" for rank in range(len(addresses))]
    judgement = judge(session, result.diagnosis, ranks)
    return {
        "session": name,
        "faults": session.command()["faults"],
        "healthy_step_s": fleet.step_s,
        "seconds": time.monotonic() - start,
        "load": os.getloadavg()[0],
        "diagnosis": result.diagnosis.to_json(),
        **asdict(judgement),
    }


def run(scenarios: Sequence[tuple[str, int]], hosts: int, folder: Path, *, keep: bool) -> Iterator[dict[str, Any]]:
    """Yield the result of each session; the sessions are dealt to one fleet of each style in turn."""
    for style in range(STYLES):
        of_style = [each for index, each in enumerate(scenarios) if _style_of(index, *each) == style]
        if not of_style:
            continue
        fleet = Fleet(hosts, style, draw("name", scenarios[0][1] + style, hosts).names[0], pauses_s=0.002)
        try:
            fleet.measure()
            for scenario, seed in of_style:
                row = record(fleet, draw(scenario, seed, hosts), folder)
                yield row | {"scenario": scenario, "style": style}
                if not keep:
                    shutil.rmtree(folder / "plugins/profile" / row["session"])
        finally:
            fleet.stop()


def _style_of(index: int, scenario: str, seed: int) -> int:
    """Return the program of a session; one of them has no place for a slow function in its backward pass."""
    style = (index + seed) % STYLES
    return style if scenario != "backward" or style != 1 else 2 * (seed % 2)


def main(options: dict[str, Any]) -> None:
    """Print the results of all sessions as lines of JSON."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.get("folder") or temporary)
        for row in run(
            [tuple(each) for each in options["scenarios"]], options["hosts"], folder, keep="folder" in options
        ):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
