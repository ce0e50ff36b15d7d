"""The fake profiler server as a process: it can be killed, and runs beside a blocked event loop."""

import asyncio
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.profiler_servers import FakeProfiler

POLL_S = 0.1


class ProfilerProcess:
    """A running server; `wait_until_recording` blocks until a capture has started."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        self._lines = process.stdout
        self._process = process
        self.port = int(self._lines.readline())

    def wait_until_recording(self, client: subprocess.Popen[str] | None = None) -> None:
        """Wait for a capture. Fails if the client that makes it ends before."""
        while client is not None and not select.select([self._lines], [], [], POLL_S)[0]:
            assert client.poll() is None, f"the client has ended with code {client.returncode}"
        assert self._lines.readline() == "recording\n"

    def kill(self) -> None:
        self._process.kill()


@contextmanager
def profiler_process() -> Iterator[ProfilerProcess]:
    """Run a server while the block runs."""
    tests = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True, cwd=tests) as process:
        try:
            yield ProfilerProcess(process)
        finally:
            process.kill()


async def _serve() -> None:
    async with FakeProfiler().serving() as server:
        print(server.port, flush=True)
        await server.began.wait()
        print("recording", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
