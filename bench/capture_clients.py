"""The compared capture clients, each in its own process to measure its memory.

`python -m bench.capture_clients CLIENT PORT HOSTS DURATION_MS` prints {"wall_s": …, "peak_rss_mib": …, …}.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

PER_BYTE = 250
MEMORY = Path("/dev/shm")
"""A file system in memory, to measure the engine and the store without a disk."""


def addresses(port: int, hosts: int) -> list[str]:
    """Return one loopback address per host; the fleet serves all on one port."""
    return [f"127.{1 + n // PER_BYTE**2}.{n // PER_BYTE % PER_BYTE}.{1 + n % PER_BYTE}:{port}" for n in range(hosts)]


def mldiagnostics(port: int, hosts: int, duration_ms: int) -> dict[str, float]:
    """Measure `mldiagnostics.capture.capture`, which probes, captures and stores."""
    from mldiagnostics.capture import capture

    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as storage:
        started = time.monotonic()
        report = capture(addresses(port, hosts), duration_ms=duration_ms, storage=storage)
        wall_s = time.monotonic() - started
    return {"wall_s": wall_s, "answered": sum(outcome.server is not None for outcome in report.outcomes), "lead_s": 2}


def floor(port: int, hosts: int, duration_ms: int) -> dict[str, float]:
    """Measure one bare call per host with a common start; responses are dropped."""
    import grpc.aio
    from mldiagnostics.capture.messages import PROFILE, profile_request
    from mldiagnostics.capture.model import Options, Target

    async def call(address: str, request: bytes) -> bool:
        unlimited = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(f"ipv4:{address}", options=unlimited) as channel:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(PROFILE)
            return bool(await method(request))

    async def all_hosts() -> int:
        request = profile_request(
            Target("", port, "host"),
            Options("floor", duration_ms, deadline_s=60),
            root="/dev/null",
            return_trace=True,
            start_ns=time.time_ns() + 2_000_000_000,
        )
        return sum(await asyncio.gather(*(call(address, request) for address in addresses(port, hosts))))

    started = time.monotonic()
    answered = asyncio.run(all_hosts())
    return {"wall_s": time.monotonic() - started, "answered": answered, "lead_s": 2}


def xprof(port: int, hosts: int, duration_ms: int) -> dict[str, float]:
    """Measure XProf's C++ client, which always uses a lead of 3 s; servers write the files."""
    with tempfile.TemporaryDirectory() as storage:
        address_list = ",".join(addresses(port, hosts))
        started = time.monotonic()
        _xprof_trace(address_list, storage, duration_ms)
        wall_s = time.monotonic() - started
    return {"wall_s": wall_s, "answered": hosts, "lead_s": 3}


def one_by_one(port: int, hosts: int, duration_ms: int) -> dict[str, float]:
    """Measure XProf's client for one host after another, as xprofiler does."""
    with tempfile.TemporaryDirectory() as storage:
        started = time.monotonic()
        for address in addresses(port, hosts):
            _xprof_trace(address, storage, duration_ms)
        return {"wall_s": time.monotonic() - started, "answered": hosts, "lead_s": 0}


def _xprof_trace(addresses: str, storage: str, duration_ms: int) -> None:
    from xprof.convert import _pywrap_profiler_plugin

    include_dataset_ops, attempts = True, 1
    with suppress(RuntimeError):  # it reports empty responses as failures, after the same time
        _pywrap_profiler_plugin.trace(
            addresses, storage, "", include_dataset_ops, duration_ms, attempts, {"host_tracer_level": 2}
        )


CLIENTS: dict[str, Callable[[int, int, int], dict[str, float]]] = {
    client.__name__: client for client in (mldiagnostics, floor, xprof, one_by_one)
}


def main(client: str, port: int, hosts: int, duration_ms: int) -> None:
    result = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # XProf's client prints to standard output
    with redirect_stdout(sys.stderr):
        measured = CLIENTS[client](port, hosts, duration_ms)
    measured["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(measured), file=result, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
