"""The gRPC client of a profiler server; the only module that imports grpc."""

import ipaddress
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mldiagnostics.capture.messages import GET_SNAPSHOT, PROFILE, SERVICE, TERMINATE, terminate_request
from mldiagnostics.capture.model import Target
from mldiagnostics.errors import MissingExtraError

try:
    import grpc
    import grpc.aio
except ModuleNotFoundError as error:
    raise MissingExtraError(extra="capture", needed_for="capturing profiles") from error


_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{"service": SERVICE, "method": method} for method in ("GetSnapshot", "Terminate")],
                "maxResponseMessageBytes": 1024,
            }
        ]
    }
)
"""Only Profile may return a large response: a snapshot of continuous profiling can have megabytes."""


class CallError(Exception):
    """A call failed; `code` and `details` are those of the gRPC status."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details

    @property
    def too_large(self) -> bool:
        """Whether the client rejected the response because of its size."""
        return self.code == "RESOURCE_EXHAUSTED" and "larger than max" in self.details


class ProfilerClient:
    """Client of one profiler server; connects on the first call.

    Use it with `contextlib.aclosing`. Methods raise `CallError`.
    """

    def __init__(self, target: Target, *, max_trace_bytes: int) -> None:
        self._channel = grpc.aio.insecure_channel(_grpc_name(target), options=_channel_options(max_trace_bytes))

    async def aclose(self) -> None:
        """Close the connection and cancel its calls."""
        await self._channel.close()

    async def knows_snapshots(self, *, timeout_s: float) -> bool:
        """Return whether the server has GetSnapshot; a snapshot is not read."""
        try:
            await self._call(GET_SNAPSHOT, b"", timeout_s=timeout_s)
        except CallError as error:
            if error.code == "UNIMPLEMENTED":
                return False
            if error.code != "NOT_FOUND" and not error.too_large:
                raise
        return True

    async def terminate(self, session: str, *, timeout_s: float) -> None:
        """Stop the recording of a session; the server remembers its id in any case."""
        await self._call(TERMINATE, terminate_request(session), timeout_s=timeout_s)

    @asynccontextmanager
    async def profile(self, request: bytes, *, timeout_s: float) -> AsyncIterator["ProfileCall"]:
        """Start a capture; leaving the context cancels it."""
        # The method is unary; called as a stream, its response stays on the server until it is read.
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(PROFILE)
        call = method(request, timeout=timeout_s)
        try:
            yield ProfileCall(call)
        finally:
            call.cancel()

    async def _call(self, path: str, request: bytes, *, timeout_s: float) -> None:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        try:
            await method(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise _call_error(error.code(), error.details()) from error


class ProfileCall:
    """A running Profile call."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def finished(self) -> None:
        """Wait until the response starts; little of it is in memory yet.

        Raises:
            CallError: the call has already failed. A later failure raises in `read`.
        """
        await self._call.initial_metadata()
        if self._call.done():
            await _check_status(self._call)

    async def read(self) -> bytes:
        """Read the whole response."""
        try:
            data = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise _call_error(error.code(), error.details()) from error
        await _check_status(self._call)
        return b"" if data is grpc.aio.EOF else data


async def _check_status(call: Any) -> None:
    code = await call.code()
    if code is not grpc.StatusCode.OK:
        raise _call_error(code, await call.details())


def _call_error(code: Any, details: str | None) -> CallError:
    return CallError(code.name, details or "")


def _grpc_name(target: Target) -> str:
    """Return the target in gRPC's syntax, without DNS for IP addresses."""
    try:
        version = ipaddress.ip_address(target.host).version
    except ValueError:
        return f"dns:///{target.address}"
    return f"ipv{version}:{target.address}"


def _channel_options(max_trace_bytes: int) -> list[tuple[str, int | str]]:
    return [
        ("grpc.service_config", _SERVICE_CONFIG),
        ("grpc.max_receive_message_length", max_trace_bytes),
        ("grpc.max_send_message_length", -1),
        # A fixed flow control window bounds the memory of responses that wait to be read.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", 64 * 1024),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        # Do not share a failed connection with other captures of the same address.
        ("grpc.use_local_subchannel_pool", 1),
    ]
