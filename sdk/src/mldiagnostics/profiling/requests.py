"""The requests of a profiler server, decoded without generated code.

Field numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mldiagnostics.capture.wire import WireError, fields, message

MAX_DURATION_MS = 10 * 60 * 1000
"""Limit of a recording, which is held in the job's memory."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """A request to record.

    Attributes:
        session: The name of the session.
        duration_ms: Length of the recording.
        start_ns: Start in Unix time; 0 means now.
        wants_trace: Whether the trace is returned; if not, it is written to a file below `root`, named after `host`.
    """

    session: str
    duration_ms: int
    start_ns: int
    wants_trace: bool
    root: str
    host: str


def read_profile_request(data: bytes) -> ProfileRequest:
    """Decode a ProfileRequest. Raises `WireError`."""
    request = dict(fields(memoryview(data)))
    options = request.get(4, b"")
    if isinstance(options, int):
        raise WireError("the options are an integer")
    tracing = dict(fields(memoryview(options)))
    return ProfileRequest(
        session=_text(request.get(6)),
        duration_ms=min(_integer(tracing.get(9)), MAX_DURATION_MS),
        start_ns=_integer(tracing.get(8)),
        wants_trace=bool(_integer(request.get(9))),
        root=_text(request.get(5)),
        host=_text(tracing.get(15)) or _text(request.get(7)),
    )


def read_terminate_request(data: bytes) -> str:
    """Decode a TerminateRequest: the session. Raises `WireError`."""
    return _text(dict(fields(memoryview(data))).get(1))


def encode_response(trace: bytes) -> bytes:
    """Encode a ProfileResponse with the trace; one without a trace is empty."""
    return message(8, trace)


def _text(value: int | memoryview | None) -> str:
    if isinstance(value, int):
        raise WireError("a string field holds an integer")
    try:
        return "" if value is None else bytes(value).decode()
    except UnicodeDecodeError as error:
        raise WireError("a string field is not UTF-8") from error


def _integer(value: int | memoryview | None) -> int:
    if isinstance(value, memoryview):
        raise WireError("an integer field holds a string")
    return value or 0
