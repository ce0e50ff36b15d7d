"""Serve XProf through a proxy that ends it after a time without readers.

It needs only the standard library.

Pods run this file as `python3 -c SOURCE PORT IDLE_S COMMAND...`, with any image. The process exits with 0 only after
the idle time: the Job that runs it is complete then, and replaces the pod after any other end.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


LOCALHOST = "127.0.0.1"
CHUNK_BYTES = 64 * 1024
POLL_S = 0.1
STOP_S = 4.0
"""XProf has so long to end; a pod has a second more."""
STOPPED = 128 + signal.SIGTERM
_MAX_HEAD_BYTES = 64 * 1024
_HEALTH_CHECKS = (b"kube-probe/", b"googlehc/", b"elb-healthchecker/")


async def serve(
    host: str | None,
    port: int,
    command: Sequence[str],
    *,
    idle_s: float,
    stage: int = 0,
    on_ready: Callable[[int], object] = lambda _: None,
) -> int:
    """Serve XProf until it ends, a signal arrives, or it is idle for too long.

    Args:
        host: Address of the proxy; None for all addresses.
        port: Port of the proxy; 0 for a free one.
        command: The command of XProf, which gets the options of its ports in addition.
        idle_s: It ends after so many seconds without traffic; 0 for never. Health checks do not count.
        stage: Port of `stage_server` on this machine, which gets every request before XProf; 0 without one.
        on_ready: Called with the port of the proxy once XProf answers.

    Returns:
        The exit code: 0 after the idle time, 143 after a signal, else that of XProf or 1.
    """
    inner, grpc = _free_ports()
    proxy = _Proxy(inner, stage)
    try:
        server = await asyncio.start_server(proxy.accept, sock=_listener(host, port))
    except OSError as error:
        return _fail(f"port {port}: cannot be used: {error.strerror}; choose another one")
    try:
        xprof = await asyncio.create_subprocess_exec(*command, "--port", str(inner), "--grpc_port", str(grpc))
    except OSError as error:
        return _fail(f"{command[0]}: cannot be started: {error.strerror}; use an image with this command")
    loop = asyncio.get_running_loop()
    ended = asyncio.ensure_future(xprof.wait())
    stopped = asyncio.Event()
    stopping = asyncio.ensure_future(stopped.wait())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    is_ready = False
    try:
        while True:
            if not is_ready and await _answers(inner):
                is_ready = True
                proxy.last_use = loop.time()
                on_ready(server.sockets[0].getsockname()[1])
            wait_s = POLL_S if not is_ready else proxy.last_use + idle_s - loop.time() if idle_s else None
            if wait_s is not None and wait_s <= 0:
                sys.stderr.write(f"XProf ends: nobody has read it for {idle_s:g} s\n")
                return 0
            await asyncio.wait({ended, stopping}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if stopped.is_set():
                return STOPPED
            if ended.done():
                return ended.result() if ended.result() > 0 else 1
    finally:
        with suppress(ProcessLookupError):
            xprof.terminate()
        await asyncio.wait({ended}, timeout=STOP_S)
        with suppress(ProcessLookupError):
            xprof.kill()


class _Proxy:
    """Passes connections to a port of this machine.

    `last_use` is the time of the last byte to or from a reader.
    """

    def __init__(self, port: int, stage: int = 0) -> None:
        self._port, self._stage = port, stage
        self._connections: set[asyncio.Task[None]] = set()
        self.last_use = 0.0

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection.

        Python 3.11 logs the end of a server whose handler is a coroutine as an error.
        """
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.read(CHUNK_BYTES)
            count = _count_nothing if _is_health_check(request) else self._count_use
            count()
            if self._stage and count == self._count_use:
                request, problem = await self._staged(request, reader)
                if problem:
                    writer.write(problem)
                    writer.close()
                    return
                count()
            inner_reader, inner_writer = await asyncio.open_connection(LOCALHOST, self._port)
        except OSError:
            writer.close()
            return
        inner_writer.write(request)
        await asyncio.gather(_copy(reader, inner_writer, count), _copy(inner_reader, writer, count))

    async def _staged(self, request: bytes, reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
        """Return the whole head of a request, and the response if the stage has a problem.

        The request is the last one of its connection, so that the stage gets the next one too.
        """
        while b"\r\n\r\n" not in request and len(request) < _MAX_HEAD_BYTES:
            if not (more := await reader.read(CHUNK_BYTES)):
                break
            request += more
        head, end, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        target = lines[0].split(b" ")[1] if lines[0].count(b" ") > 1 else b"/"
        response = await self._response(b"GET " + target + b" HTTP/1.0\r\n\r\n")
        is_ready = response.split(b" ")[1:2] == [b"200"]
        return b"\r\n".join([*lines, b"Connection: close"]) + end + body, b"" if is_ready else response

    async def _response(self, request: bytes) -> bytes:
        """Return the response of the stage."""
        try:
            reader, writer = await asyncio.open_connection(LOCALHOST, self._stage)
            writer.write(request)
            response = await reader.read()
        except OSError as error:
            return f"HTTP/1.0 502 Bad Gateway\r\n\r\nstage of the bucket: {error}; see its log".encode()
        writer.close()
        return response

    def _count_use(self) -> None:
        self.last_use = asyncio.get_running_loop().time()


def _count_nothing() -> None:
    """Do nothing, for connections that are not use."""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[], None]) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            count()
            writer.write(chunk)
            await writer.drain()
    writer.close()


def _is_health_check(request: bytes) -> bool:
    """Return whether a kubelet or a load balancer sends a connection's first request."""
    lines = request.lower()
    return not request or any(b"\nuser-agent: " + agent in lines for agent in _HEALTH_CHECKS)


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(LOCALHOST, port)
    except OSError:
        return False
    writer.close()
    return True


def _listener(host: str | None, port: int) -> socket.socket:
    if host is None:
        with suppress(OSError, ValueError):  # IPv6 may be turned off
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server((host or "", port))


def _free_ports() -> list[int]:
    sockets = [socket.create_server((LOCALHOST, 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 1


def _main(port: str, idle_s: str, *command: str) -> int:
    return asyncio.run(serve(None, int(port), command, idle_s=float(idle_s)))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
