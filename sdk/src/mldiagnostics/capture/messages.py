"""Messages of `tensorflow.ProfilerService`, encoded and decoded by hand.

Field numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`.
"""

from dataclasses import dataclass

from mldiagnostics.capture.model import Options, Target
from mldiagnostics.capture.wire import WireError, fields, integer, message, text

SERVICE = "tensorflow.ProfilerService"
PROFILE = f"/{SERVICE}/Profile"
GET_SNAPSHOT = f"/{SERVICE}/GetSnapshot"
TERMINATE = f"/{SERVICE}/Terminate"
START_CONTINUOUS = f"/{SERVICE}/StartContinuousProfiling"
STOP_CONTINUOUS = f"/{SERVICE}/StopContinuousProfiling"

UNREADABLE = b"\xff"
"""No message: a server that has the method rejects it before it acts, with INTERNAL."""

UNWRITABLE_ROOT = "/dev/null/mldiagnostics"
"""A directory that even root cannot create: some servers write a file although they return the trace."""

_OPTIONS_VERSION = 1
"""With version 0 a server ignores the tracer levels."""
_RESPONSE_FIELDS = 1000
"""Bound on the work for a response; real ones have a few fields."""


@dataclass(frozen=True, slots=True)
class ProfileResponse:
    """Response to Profile; `trace` is a serialised XSpace or None."""

    empty: bool
    trace: memoryview | None


def profile_request(target: Target, options: Options, *, root: str, return_trace: bool, start_ns: int | None) -> bytes:
    """Encode a ProfileRequest.

    `root` must end in `plugins/profile`. Without `start_ns` the server starts at once. The file stem is `host_name`,
    the only one of three name fields that every version uses.
    """
    tracing = b"".join(
        (
            integer(2, options.tracers.host),
            integer(3, options.tracers.device),
            integer(4, options.tracers.python),
            integer(5, _OPTIONS_VERSION),
            integer(7, 1),  # enable_hlo_proto, for the graph and memory viewers
            integer(8, start_ns or 0),
            integer(9, options.duration_ms),
        )
    )
    return b"".join(
        (
            integer(1, options.duration_ms),
            message(4, tracing),
            text(5, root),
            text(6, options.session),
            text(7, target.stem),
            integer(9, return_trace),
        )
    )


def no_tracers_request() -> bytes:
    """Encode a ProfileRequest whose session records nothing."""
    return message(4, integer(5, _OPTIONS_VERSION))


def terminate_request(session: str) -> bytes:
    """Encode a TerminateRequest."""
    return text(1, session)


def decode_response(data: memoryview) -> ProfileResponse:
    """Decode a ProfileResponse without copying its trace; may raise `WireError`."""
    empty, trace = False, None
    for count, (number, value) in enumerate(fields(data), start=1):
        if count > _RESPONSE_FIELDS:
            raise WireError(f"it has more than {_RESPONSE_FIELDS} fields")
        if number == 7:
            empty = bool(value)
        elif number == 8:
            if isinstance(value, int):
                raise WireError("the trace is an integer")
            trace = value
    return ProfileResponse(empty, trace)
