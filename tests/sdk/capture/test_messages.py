"""The requests, read back with the official descriptors, and answers written with them."""

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.messages import decode_response, profile_request, terminate_request
from mldiagnostics.capture.model import Options, Target, Tracers
from support.servers.profiler_protos import message
from support.servers.profiler_servers import answer, trace

LEVELS = st.builds(Tracers, host=st.integers(0, 3), device=st.integers(0, 1), python=st.integers(0, 1))


@given(
    session=st.text(min_size=1),
    stem=st.text(min_size=1),
    root=st.text(min_size=1),
    duration_ms=st.integers(1, 10**9),
    start_ns=st.none() | st.integers(1, 2**63 - 1),
    tracers=LEVELS,
    in_answer=st.booleans(),
)
def test_property_a_server_decodes_the_request(
    *,
    session: str,
    stem: str,
    root: str,
    duration_ms: int,
    start_ns: int | None,
    tracers: Tracers,
    in_answer: bool,
) -> None:
    options = Options(session=session, duration_ms=duration_ms, deadline_s=1, tracers=tracers)
    encoded = profile_request(Target("::1", 1, stem), options, root=root, return_trace=in_answer, start_ns=start_ns)
    request = message("ProfileRequest").FromString(encoded)
    assert (request.session_id, request.host_name, request.repository_root) == (session, stem, root)
    assert request.emit_xspace is in_answer
    assert request.opts.version == 1
    assert request.opts.enable_hlo_proto
    assert (request.opts.duration_ms, request.duration_ms) == (duration_ms, duration_ms)
    assert request.opts.start_timestamp_ns == (start_ns or 0)
    assert tracers == Tracers(
        request.opts.host_tracer_level, request.opts.device_tracer_level, request.opts.python_tracer_level
    )


@given(st.text())
def test_property_terminate_names_the_session(session: str) -> None:
    assert message("TerminateRequest").FromString(terminate_request(session)).session_id == session


@given(empty=st.booleans(), events=st.integers(0, 3))
def test_property_the_trace_of_a_response_is_unchanged(*, empty: bool, events: int) -> None:
    space = trace(events=events)
    read = decode_response(answer(space, empty=empty))
    assert read.empty is empty
    assert read.trace is not None
    assert message("XSpace").FromString(bytes(read.trace)) == message("XSpace").FromString(space)


def test_a_response_without_a_trace_has_none() -> None:
    assert decode_response(b"").trace is None
