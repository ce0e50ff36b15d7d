"""The wire format, compared with the official implementation, and invalid bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.wire import WireError, fields, integer, message, text
from support.servers.profiler_protos import message as official

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(number=INT64, words=st.text())
def test_property_the_official_implementation_decodes_our_bytes(number: int, words: str) -> None:
    encoded = integer(4, number) + text(5, words) + message(6, b"\x00\xff")
    stat: Any = official("XStat").FromString(encoded)
    # A oneof keeps its last field; each is looked at alone as well.
    assert stat.bytes_value == b"\x00\xff"
    assert official("XStat").FromString(integer(4, number)).int64_value == number
    assert official("XStat").FromString(text(5, words)).str_value == words


@given(key=INT64, double=st.floats(allow_nan=False), data=st.binary())
def test_property_official_bytes_are_walked_field_by_field(key: int, double: float, data: bytes) -> None:
    encoded = official("XStat")(metadata_id=key, bytes_value=data).SerializeToString()
    encoded += official("XStat")(double_value=double).SerializeToString()
    walked = dict(fields(memoryview(encoded)))
    assert walked.get(1, 0) == key % 2**64
    assert bytes(walked[6]) == data  # type: ignore[arg-type]  # field 6 is length-delimited
    assert len(walked[2]) == 8  # type: ignore[arg-type]  # a double has fixed width


@given(st.binary(max_size=64))
def test_property_any_bytes_are_walked_or_rejected(data: bytes) -> None:
    try:
        walked = list(fields(memoryview(data)))
    except WireError:
        return
    assert sum(len(value) if isinstance(value, memoryview) else 1 for _, value in walked) <= len(data)


def test_absent_fields_have_no_bytes() -> None:
    assert integer(1, 0) == text(1, "") == b""


@pytest.mark.parametrize(
    "data", [b"\x00\x01", b"\x08", b"\x08" + b"\xff" * 10, b"\x0a\x05abc", b"\x0b", b"\x0d\x01\x02"]
)
def test_invalid_messages_are_rejected(data: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(memoryview(data)))
