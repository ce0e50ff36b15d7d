"""The requests that a profiler server understands, read without generated code.

Field numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mldiagnostics.capture.wire import WireError, fields, message

MAX_DURATION_MS = 10 * 60 * 1000
"""A recording lies in the memory of the job: nobody outside may fill that."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What is asked of Profile: `start_ns` is Unix time, 0 for at once; `root` and `host` place a file, if wanted."""

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


def write_answer(trace: bytes) -> bytes:
    """Encode a ProfileResponse that holds the trace; one without a trace, which lies in a file, is empty."""
    return message(8, trace)


def _text(value: int | memoryview | None) -> str:
    if isinstance(value, int):
        raise WireError("a text is an integer")
    try:
        return "" if value is None else bytes(value).decode()
    except UnicodeDecodeError as error:
        raise WireError("a text is not UTF-8") from error


def _integer(value: int | memoryview | None) -> int:
    if isinstance(value, memoryview):
        raise WireError("an integer is a text")
    return value or 0
