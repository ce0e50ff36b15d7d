"""The few messages that are spoken with a `tensorflow.ProfilerService`.

Field numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`.
"""

from dataclasses import dataclass

from mldiagnostics.capture.model import Options, Target
from mldiagnostics.capture.wire import WireError, fields, integer, message, text

SERVICE = "tensorflow.ProfilerService"
PROFILE = f"/{SERVICE}/Profile"
GET_SNAPSHOT = f"/{SERVICE}/GetSnapshot"
TERMINATE = f"/{SERVICE}/Terminate"

HARMLESS_ROOT = "/dev/null/mldiagnostics"
"""A directory that nobody, not even root, can make: for servers that write a file although the trace was asked back."""

_OPTIONS_VERSION = 1
"""With 0 a server ignores the tracer levels."""


@dataclass(frozen=True, slots=True)
class ProfileResponse:
    """What a server said to Profile; `trace` is a serialised XSpace, None if the server did not send one."""

    empty: bool
    trace: memoryview | None


def profile_request(
    target: Target, options: Options, *, root: str, answer_with_trace: bool, start_ns: int | None
) -> bytes:
    """Encode a ProfileRequest; `root` must end in `plugins/profile`, `start_ns` None starts at once.

    The host's name travels in `host_name`: the only one of the three naming fields that every version honours.
    """
    tracing = b"".join(
        (
            integer(2, options.tracers.host),
            integer(3, options.tracers.device),
            integer(4, options.tracers.python),
            integer(5, _OPTIONS_VERSION),
            integer(7, 1),  # enable_hlo_proto: graph and memory viewers need the programs
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
            integer(9, answer_with_trace),
        )
    )


def terminate_request(session: str) -> bytes:
    """Encode a TerminateRequest."""
    return text(1, session)


def read_answer(data: bytes) -> ProfileResponse:
    """Decode a ProfileResponse without copying its trace. Raises `WireError`."""
    empty, trace = False, None
    for number, value in fields(memoryview(data)):
        if number == 7:
            empty = bool(value)
        elif number == 8:
            if isinstance(value, int):
                raise WireError("the trace is an integer")
            trace = value
    return ProfileResponse(empty, trace)
