"""Profiler ports of Compute Engine and TPU VMs, by `gcloud … ssh` tunnels."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError

from mldiagnostics_cli.cluster.port_forward import LOCALHOST
from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence


CONNECT_S: Final = 60.0
"""So long a tunnel may take: the first one of a user copies a key to the machine."""
_POLL_S: Final = 0.1
_END_S: Final = 5.0
_ERROR: Final = "ERROR: "
_OF_SSH: Final = "exited with return code"
"""gcloud says only so much about a failure of ssh, which has named it before."""


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """One machine, or one worker of a TPU slice."""

    name: str
    zone: str
    worker: int | None = None
    """Number in the TPU slice; None for a machine without TPU."""
    is_alone: bool = True
    """Whether the slice has no other worker."""

    @property
    def stem(self) -> str:
        """Return the name of its trace."""
        return self.name if self.is_alone else f"{self.name}_{self.worker}"

    def tunnel(self, local_port: int, port: int) -> list[str]:
        """Return the command that forwards a local port to a port of the machine."""
        tpu, worker = (["tpus", "tpu-vm"], [f"--worker={self.worker}"]) if self.worker is not None else ([], [])
        kind = ["compute", *tpu, "ssh"] if tpu else ["compute", "ssh"]
        ssh = ["-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{local_port}:localhost:{port}"]
        return ["gcloud", *kind, self.name, f"--zone={self.zone}", *worker, "--quiet", "--", *ssh]


async def workers_of(name: str, zone: str) -> list[VirtualMachine]:
    """Return the workers of a TPU VM or slice. Raises `ConfigurationError`."""
    command = ["gcloud", "compute", "tpus", "tpu-vm", "describe", name, f"--zone={zone}", "--format=json"]
    process = await _start(command, stdout=asyncio.subprocess.PIPE)
    out, err = await process.communicate()
    if process.returncode:
        raise ConfigurationError(
            f"{name}: {gcloud_problem(err.decode(errors='replace'))}; check the name, the zone and `gcloud auth list`"
        )
    count = max(1, len(json.loads(out).get("networkEndpoints") or ()))
    return [VirtualMachine(name, zone, worker, is_alone=count == 1) for worker in range(count)]


@asynccontextmanager
async def tunnels(
    machines: Sequence[VirtualMachine], port: int, *, local_ports: Sequence[int] | None = None
) -> AsyncIterator[list[str]]:
    """Open a tunnel to each machine while the block runs.

    Problems of some machines are noted. SIGTERM and SIGHUP end the tunnels too.

    Args:
        machines: The machines.
        port: Port of their servers.
        local_ports: Ports of this machine; by default free ones.

    Yields:
        The local addresses, in the order of the machines; nothing listens at those without a tunnel.

    Raises:
        ConfigurationError: gcloud is not installed.
        MLDiagnosticsError: No tunnel opens; the message has the words of gcloud.
    """
    ports = _free_ports(len(machines)) if local_ports is None else local_ports
    processes: list[asyncio.subprocess.Process] = []
    with _ended_by_signals():
        try:
            for machine, local_port in zip(machines, ports, strict=True):
                processes.append(await _start(machine.tunnel(local_port, port), stdout=asyncio.subprocess.DEVNULL))
            opening = zip(machines, processes, ports, strict=True)
            problems = await asyncio.gather(*(_problem_of(*each) for each in opening))
            if all(problems):
                raise MLDiagnosticsError(problems[0])
            for problem in filter(None, problems):
                note(problem)
            yield [f"{LOCALHOST}:{local_port}" for local_port in ports]
        finally:
            await asyncio.gather(*map(_stop, processes))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Cancel the task on SIGTERM and SIGHUP.

    After the block the signal ends the process. One that is ignored, as after `nohup`, or handled otherwise stays so.
    """
    loop, task, received = asyncio.get_running_loop(), asyncio.current_task(), list[int]()

    def end(number: int) -> None:
        received.append(number)
        if task is not None:
            task.cancel()

    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        if received:
            os.kill(os.getpid(), received[0])


async def _start(command: Sequence[str], *, stdout: int) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C stops the recordings first, through the tunnels
        )
    except FileNotFoundError as error:
        raise ConfigurationError("gcloud: not installed here; install the Google Cloud CLI") from error


async def _problem_of(machine: VirtualMachine, process: asyncio.subprocess.Process, local_port: int) -> str:
    """Wait until the local port accepts connections.

    Return the reason if it does not, else an empty text.
    """
    deadline = asyncio.get_running_loop().time() + CONNECT_S
    while asyncio.get_running_loop().time() < deadline:
        if process.returncode is not None:
            errors = await process.stderr.read() if process.stderr else b""
            problem = gcloud_problem(errors.decode(errors="replace"))
            return f"{machine.name}: no tunnel: {problem}; check the name, the zone and your rights"
        with suppress(OSError):
            _, writer = await asyncio.open_connection(LOCALHOST, local_port)
            writer.close()
            return ""
        await asyncio.sleep(_POLL_S)
    return f"{machine.name}: no tunnel in {CONNECT_S:g} s; check that `gcloud compute ssh` works"


async def _stop(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _free_ports(count: int) -> list[int]:
    """Return free ports, all different."""
    held = [socket.create_server((LOCALHOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def gcloud_problem(errors: str) -> str:
    r"""Return the problem that gcloud names in its standard error, without its advice.

    >>> gcloud_problem("ERROR: (gcloud.compute.ssh) You are not logged in.\nPlease run:\n  $ gcloud auth login")
    '(gcloud.compute.ssh) You are not logged in'
    >>> gcloud_problem("ERROR: (gcloud.compute) Could not fetch resource:\n - Invalid zone 'x'.")
    "Invalid zone 'x'"
    >>> gcloud_problem("Connection refused\nERROR: (gcloud.compute.ssh) [ssh] exited with return code [255].")
    'Connection refused'
    """
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if not lines:
        return "gcloud failed without a message"
    place = next((number for number, line in enumerate(lines) if line.startswith(_ERROR)), len(lines) - 1)
    if lines[place].endswith(":") and lines[place + 1 :]:
        place += 1
    elif _OF_SSH in lines[place] and place:
        place -= 1
    return lines[place].removeprefix(_ERROR).removeprefix("- ").rstrip(".")
