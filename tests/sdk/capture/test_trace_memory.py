"""The memory of traces: one byte for each byte of a trace, counted until the system has it back."""

import asyncio
import sys
import threading
from contextlib import aclosing
from pathlib import Path

import pytest
from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.engine import run
from mldiagnostics.capture.model import Options, Reason, Target
from mldiagnostics.capture.trace_memory import TraceMemory
from mldiagnostics.capture.wire import message
from mldiagnostics.errors import StoreForbidden
from mldiagnostics.store import Stored
from support.servers import profiler_servers as servers
from support.servers.profiler_servers import FakeProfiler

MEBIBYTE = 1024 * 1024
TRACE_BYTES = 64 * MEBIBYTE
QUICK = Options(session="s1", duration_ms=50, deadline_s=60)

CLIENT = """
import re, sys
from pathlib import Path
from mldiagnostics.capture import capture

def kibibytes(field):
    return int(re.search(field + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

capture(["127.0.0.1:1"], storage=sys.argv[2] + "/none")  # loads everything
before = kibibytes("VmRSS")
(outcome,) = capture([f"127.0.0.1:{sys.argv[1]}"], storage=sys.argv[2], duration_ms=50).outcomes
print(outcome.reason, (kibibytes("VmHWM") - before) * 1024)
"""


@pytest.mark.parametrize(("storage", "copies_bytes"), [("{folder}", 0), ("gs://{bucket}/traces", 16 * 4 * MEBIBYTE)])
async def test_a_trace_costs_its_own_size(storage: str, copies_bytes: int, tmp_path: Path, gcs_bucket: str) -> None:
    """Uploads copy one part of each of their threads besides."""
    server = FakeProfiler()
    server.reply = servers.replying(servers.answer(servers.trace(padding=TRACE_BYTES)))
    async with server.serving():
        command = [sys.executable, "-c", CLIENT, str(server.port), storage.format(folder=tmp_path, bucket=gcs_bucket)]
        client = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await client.communicate()
    reason, used = output.split()
    assert reason == b"Captured"
    assert int(used) < 1.2 * TRACE_BYTES + copies_bytes


async def test_memory_that_an_abandoned_write_reads_counts_until_its_end() -> None:
    freed = asyncio.Event()
    memory = TraceMemory(MEBIBYTE, freed.set)
    reads, ends = threading.Event(), threading.Event()

    def write(trace: memoryview) -> None:
        piece = trace[: MEBIBYTE // 2]
        reads.set()
        ends.wait(60)
        del piece

    writing = asyncio.create_task(asyncio.to_thread(write, memory.view))
    await asyncio.to_thread(reads.wait, 60)
    memory.close()
    del memory
    await asyncio.sleep(0)
    assert not freed.is_set()
    ends.set()
    await writing
    del writing
    await asyncio.wait_for(freed.wait(), 60)


async def test_failures_of_all_kinds_leave_no_memory_in_use() -> None:
    async def refuse(_target: Target, _trace: memoryview) -> Stored:
        raise StoreForbidden("no")

    budget, ended = ByteBudget(), []
    many_fields = message(1, b"\x38\x01" * MEBIBYTE)
    replies = [servers.trace(padding=MEBIBYTE), many_fields, message(1, b"x") + bytes(MEBIBYTE), b"\x08" * MEBIBYTE]
    options = Options(session="s1", duration_ms=50, deadline_s=10)
    for reply in replies:
        server = FakeProfiler()
        server.reply = servers.replying(message(8, reply))
        async with server.serving():
            target = Target("127.0.0.1", server.port, "host-0")
            async with aclosing(run([target], options, sink=refuse, budget=budget)) as outcomes:
                ended += [outcome.reason async for outcome in outcomes]
        await asyncio.sleep(0)
        assert budget.used_bytes == 0
    assert ended == [Reason.STORE_FORBIDDEN, Reason.STORE_FORBIDDEN, Reason.BAD_ANSWER, Reason.BAD_ANSWER]
