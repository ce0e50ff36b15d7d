"""Profiler servers of every manner, for a pod with the operator's image: `profiler.py PORT=MANNER[:MEBIBYTES]…`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
from mldiagnostics.capture.messages import SERVICE
from mldiagnostics.capture.wire import fields, integer, message, text

MIB = 1 << 20
DRIP_BYTES, DRIP_EVERY_S, DRIPPED_BYTES = 256, 1.0, 16 * MIB
NASTY = "\x1b[31mall is well\x07\r\n" + "/var/lib/secret " * 250


def response(size: int, *, environment: bytes = b"") -> bytes:
    """Return a ProfileResponse in jaxlib's layout with an event name of `size` bytes."""
    name = message(4, integer(1, 1) + message(2, integer(1, 1) + text(2, "x" * size)))
    line = message(3, integer(1, 1) + text(2, "python") + message(4, integer(1, 1) + integer(3, 1)))
    planes = message(1, integer(1, 1) + text(2, "/host:CPU") + line + name)
    return message(8, planes + message(1, text(2, "Task Environment") + environment))


class Server:
    """One port; `answers` counts its traces."""

    def __init__(self, manner: str, size: int) -> None:
        self.manner, self.size, self.answers = manner, size, 0

    async def profile(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        read = dict(fields(memoryview(request)))
        await asyncio.sleep(int(read.get(1, 0)) / 1000)  # milliseconds
        print("profiled", bytes(read[6]).decode(), flush=True)  # the session
        self.answers += 1
        match self.manner:
            case "bomb":
                context.set_compression(grpc.Compression.Gzip)
            case "growing" if self.answers <= 2:
                return response(1024)
            case "tiny":
                return response(1, environment=b"\x32\x00" * (self.size // 2))
            case "nasty":
                await context.abort(grpc.StatusCode.INTERNAL, NASTY)
        return response(self.size)

    async def snapshot(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")

    async def terminate(self, _: bytes, __: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return b""

    async def serve(self, port: int) -> Any:
        server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
        methods = {"Profile": self.profile, "GetSnapshot": self.snapshot, "Terminate": self.terminate}
        handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(each) for name, each in methods.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        server.add_insecure_port(f"0.0.0.0:{port}")
        await server.start()
        return server


async def stay_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Read for ever, answer never."""
    while await reader.read(4096):
        pass


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak just enough HTTP/2 to send the start of a large trace, and then a few bytes each second."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        await reader.readexactly(24)  # the client's preface
        writer.write(_frame(4, 0, 0, b""))
        calls: set[asyncio.Task[None]] = set()
        while True:
            head = await reader.readexactly(9)
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9]) & 0x7FFFFFFF
            payload = await reader.readexactly(int.from_bytes(head[:3]))
            if kind == 4 and not flags:
                writer.write(_frame(4, 1, 0, b""))
            elif kind == 6 and not flags:
                writer.write(_frame(6, 1, 0, payload))
            elif kind == 0 and payload:
                is_profile = len(payload) > 64  # a request for a snapshot is empty, and one to terminate is short
                calls.add(asyncio.create_task(_drip(writer, stream) if is_profile else _empty(writer, stream)))


# HPACK: `:status: 200` from the static table; literals without indexing.
_HEADERS = b"\x88\x00\x0ccontent-type\x10application/grpc"
_TRAILERS = b"\x00\x0bgrpc-status\x010"


async def _drip(writer: asyncio.StreamWriter, stream: int) -> None:
    writer.write(_frame(1, 4, stream, _HEADERS))
    writer.write(_frame(0, 0, stream, b"\x00" + DRIPPED_BYTES.to_bytes(4)))
    with suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(_frame(0, 0, stream, bytes(DRIP_BYTES)))
            await writer.drain()
            await asyncio.sleep(DRIP_EVERY_S)


async def _empty(writer: asyncio.StreamWriter, stream: int) -> None:
    writer.write(_frame(1, 4, stream, _HEADERS) + _frame(0, 0, stream, bytes(5)) + _frame(1, 5, stream, _TRAILERS))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
RAW: dict[str, Connected] = {"silent": stay_silent, "drip": drip}


async def main(arguments: list[str]) -> None:
    kept: list[Any] = []
    for argument in arguments:
        port, _, words = argument.partition("=")
        manner, _, mebibytes = words.partition(":")
        if manner in RAW:
            kept.append(await asyncio.start_server(RAW[manner], "0.0.0.0", int(port)))
        else:
            size = int(float(mebibytes) * MIB) if mebibytes else 64 * 1024
            kept.append(await Server(manner, size).serve(int(port)))
    print("serving", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
