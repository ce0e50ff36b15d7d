"""Requests encoded by the capture engine and by the official descriptors are decoded."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.messages import decode_response, profile_request, terminate_request
from mldiagnostics.capture.model import Options, Target
from mldiagnostics.capture.wire import WireError
from mldiagnostics.profiling.requests import (
    MAX_DURATION_MS,
    ProfileRequest,
    encode_response,
    read_profile_request,
    read_terminate_request,
)
from support.servers.profiler_protos import message

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@given(
    session=TEXT,
    host=TEXT,
    root=TEXT,
    start_ns=st.integers(0, 2**63 - 1),
    duration_ms=st.integers(1, 10**9),
    return_trace=st.booleans(),
)
def test_property_the_engines_request_is_decoded(
    *, session: str, host: str, root: str, start_ns: int, duration_ms: int, return_trace: bool
) -> None:
    options = Options(session, duration_ms, 1)
    encoded = profile_request(
        Target("::1", 1, host), options, root=root, return_trace=return_trace, start_ns=start_ns or None
    )
    expected = ProfileRequest(session, min(duration_ms, MAX_DURATION_MS), start_ns, return_trace, root, host)
    assert read_profile_request(encoded) == expected


@given(host=TEXT, override=TEXT)
def test_property_the_override_of_the_host_name_is_used(host: str, override: str) -> None:
    request = message("ProfileRequest")(host_name=host)
    request.opts.override_hostname = override
    assert read_profile_request(request.SerializeToString()).host == (override or host)


@given(TEXT)
def test_property_a_terminate_request_is_decoded(session: str) -> None:
    assert read_terminate_request(terminate_request(session)) == session


@given(st.binary(max_size=200))
def test_property_any_bytes_are_decoded_or_rejected(data: bytes) -> None:
    for read in (read_profile_request, read_terminate_request):
        with contextlib.suppress(WireError):
            read(data)


@given(st.binary(min_size=1))
def test_property_the_engine_decodes_the_trace_of_our_response(trace: bytes) -> None:
    answer = decode_response(encode_response(trace))
    assert not answer.empty
    assert answer.trace is not None
    assert bytes(answer.trace) == trace
