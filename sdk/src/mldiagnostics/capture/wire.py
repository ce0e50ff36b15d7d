"""The Protocol Buffers wire format, without generated modules.

Generated modules could collide with those of TensorFlow or XProf. Format:
https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_64_BITS = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not a Protocol Buffers message."""


def integer(number: int, value: int) -> bytes:
    """Encode a bool, enum or integer field; zero is empty as in proto3."""
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


def text(number: int, value: str) -> bytes:
    """Encode a string field; the empty string is empty as in proto3."""
    return message(number, value.encode()) if value else b""


def message(number: int, encoded: bytes) -> bytes:
    """Encode a field that holds an encoded message."""
    return _varint(number << 3 | _BYTES) + _varint(len(encoded)) + encoded


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field of a message.

    Length-delimited and fixed-width fields are views of their bytes, without copies. Raises `WireError`.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError("field number 0")
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            length, at = _read_varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"wire type {kind}")
        if length > end - at:
            raise WireError(f"field {number} has {length} bytes, but only {end - at} are left")
        yield number, data[at : at + length]
        at += length


def _varint(value: int) -> bytes:
    value &= _64_BITS
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:  # most integers have one byte
        return data[at], at + 1
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & _64_BITS, at + index + 1
    raise WireError("cut or overlong integer")
