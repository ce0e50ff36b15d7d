"""The gRPC client of one profiler server; the only module that knows grpc."""

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
"""Only Profile may answer at length: a process under continuous profiling would send megabytes as its snapshot."""


class CallError(Exception):
    """A call that ended without an answer; `code` is the name of the gRPC status, `details` the other side's words."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details

    @property
    def too_large(self) -> bool:
        """Whether the answer was refused here, for its size."""
        return self.code == "RESOURCE_EXHAUSTED" and "larger than max" in self.details


class ProfilerClient:
    """One profiler server, connected when first called; use it under `contextlib.aclosing`."""

    def __init__(self, target: Target, *, max_trace_bytes: int) -> None:
        self._channel = grpc.aio.insecure_channel(_grpc_name(target), options=_channel_options(max_trace_bytes))

    async def aclose(self) -> None:
        """Hang up, cancelling what is under way."""
        await self._channel.close()

    async def knows_snapshots(self, *, timeout_s: float) -> bool:
        """Tell whether the server has GetSnapshot; a snapshot that it may have is not read. Raises `CallError`."""
        try:
            await self._call(GET_SNAPSHOT, b"", timeout_s=timeout_s)
        except CallError as error:
            if error.code == "UNIMPLEMENTED":
                return False
            if error.code != "NOT_FOUND" and not error.too_large:
                raise
        return True

    async def terminate(self, session: str, *, timeout_s: float) -> None:
        """End the recording of a session; servers remember the id, running or not. Raises `CallError`."""
        await self._call(TERMINATE, terminate_request(session), timeout_s=timeout_s)

    @asynccontextmanager
    async def profile(self, request: bytes, *, timeout_s: float) -> AsyncIterator["ProfileCall"]:
        """Start a capture; leaving the block early aborts it."""
        # On the wire a unary call; as a stream its answer stays on the other side until it is read.
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
    """A capture under way."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def finished(self) -> None:
        """Return when the host has an answer, of which little is in memory yet, or none, as `answer` will tell.

        Raises `CallError` if it is known already that there is none.
        """
        await self._call.initial_metadata()
        if self._call.done():
            await _ended_well(self._call)

    async def answer(self) -> bytes:
        """Read the whole answer. Raises `CallError`."""
        try:
            data = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise _call_error(error.code(), error.details()) from error
        await _ended_well(self._call)
        return b"" if data is grpc.aio.EOF else data


async def _ended_well(call: Any) -> None:
    code = await call.code()
    if code is not grpc.StatusCode.OK:
        raise _call_error(code, await call.details())


def _call_error(code: Any, details: str | None) -> CallError:
    return CallError(code.name, details or "")


def _grpc_name(target: Target) -> str:
    """Name the address so that nothing is looked up which is an address already."""
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
        # Flow control must not grow its window while answers wait to be read: that is what bounds memory.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", 64 * 1024),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        # Another capture's failed connection to the same address says nothing about this one.
        ("grpc.use_local_subchannel_pool", 1),
    ]
