"""1000 profiler servers in one process, on every address 127.x.y.z and one port.

`python -m bench.profiler_fleet [TRACE_BYTES]` prints the port; without a number the responses are empty. GetStarts
returns the start of each capture. The protocol is encoded by hand to cost little: the servers share the cores with the
client.
"""

import asyncio
import json
import sys
import time
from typing import Any

import grpc
import grpc.aio
from mldiagnostics.capture.messages import SERVICE
from mldiagnostics.capture.wire import fields, integer, message, text

START_TIMESTAMP_NS, DURATION_MS = 8, 9
EMPTY = integer(7, 1)
EVENTS = message(1, text(2, "/host:CPU") + message(3, message(4, integer(1, 1))))


class Fleet:
    """Serves all hosts; traces have at least `trace_bytes`, None for empty responses."""

    def __init__(self, trace_bytes: int | None) -> None:
        self._starts_ns: list[int] = []
        # Only the times differ between responses; the rest can be megabytes and is joined once.
        body = EVENTS + message(1, text(2, "x" * (trace_bytes or 0)))
        size = len(body) + len(_environment(time.time_ns(), time.time_ns()))
        self._head = None if trace_bytes is None else message(8, bytes(size))[:-size] + body

    async def profile(self, request: bytes, _context: object) -> bytes:
        """Wait for the start and the end, and return a trace with both times."""
        outer = dict(fields(memoryview(request)))
        options = dict(fields(memoryview(outer[4])))  # type: ignore[arg-type]
        planned_ns = int(options.get(START_TIMESTAMP_NS, 0))
        await asyncio.sleep(max(planned_ns - time.time_ns(), 0) / 1e9)
        start_ns = time.time_ns()
        self._starts_ns.append(start_ns)
        await asyncio.sleep(int(options[DURATION_MS]) / 1e3)
        return EMPTY if self._head is None else self._head + _environment(start_ns, time.time_ns())

    async def get_snapshot(self, _request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        """Return NOT_FOUND, as every server with GetSnapshot does."""
        await context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")

    async def get_starts(self, _request: bytes, _context: object) -> bytes:
        """Return the starts since the last call, as JSON."""
        starts_ns, self._starts_ns = self._starts_ns, []
        return json.dumps(starts_ns).encode()


def _environment(start_ns: int, stop_ns: int) -> bytes:
    names = {1: "profile_start_time", 2: "profile_stop_time"}
    names_encoded = (
        message(5, integer(1, key) + message(2, integer(1, key) + text(2, name))) for key, name in names.items()
    )
    values = (message(6, integer(1, key) + integer(3, value)) for key, value in {1: start_ns, 2: stop_ns}.items())
    return message(1, text(2, "Task Environment") + b"".join((*names_encoded, *values)))


async def main(trace_bytes: int | None) -> None:
    fleet = Fleet(trace_bytes)
    methods = {"Profile": fleet.profile, "GetSnapshot": fleet.get_snapshot, "GetStarts": fleet.get_starts}
    handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("0.0.0.0:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else None))
