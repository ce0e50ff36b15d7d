"""TensorBoard's file format for scalars: protobuf events in TFRecords; pure.

Each step of a job is an event, so a monitor that starts late writes thousands at once. Protobuf objects and
TensorBoard's checksum in Python take 35 µs per event, these functions 2 µs.

    Event         1: double wall_time   2: int64 step   3: string file_version   5: Summary
    Summary       1: Value              Value: 1: string tag, 2: float simple_value
    TFRecord      uint64 length, uint32 checksum of it, the event, uint32 checksum of that; little-endian, CRC-32C
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_MIN_VECTORIZED = 16
"""From this many events of one length on, checksums are computed with NumPy."""

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_WORD = 2**32 - 1

_double = struct.Struct("<d").pack
_float = struct.Struct("<f").pack
_length = struct.Struct("<Q").pack
_word = struct.Struct("<I").pack


def scalar_event(wall_time: float, step: int, scalars: Iterable[tuple[str, float]]) -> bytes:
    """Return the encoded event with the tagged scalars of one step."""
    values = b"".join([_value(tag, number) for tag, number in scalars])
    step_field = b"\x10" + _varint(step) if step else b""
    return b"\x09" + _double(wall_time) + step_field + b"\x2a" + _varint(len(values)) + values


def number_event(wall_time: float, step: int, tag: str, number: float) -> bytes:
    """Return the encoded event with one number: faster than `scalar_event`."""
    step_field = b"\x10" + _varint(step) if step else b""
    return b"\x09" + _double(wall_time) + step_field + _summary_prefix(tag) + _single(number)


def version_event(wall_time: float) -> bytes:
    """Return the first event of a file."""
    version = b"brain.Event:2"
    return b"\x09" + _double(wall_time) + b"\x1a" + _varint(len(version)) + version


def frames(events: Sequence[bytes]) -> bytes:
    """Return encoded events as TFRecords."""
    return b"".join([_framed(list(alike), length) for length, alike in groupby(events, len)])


def _value(tag: str, number: float) -> bytes:
    return _value_prefix(tag) + _single(number)


@lru_cache(maxsize=4096)
def _value_prefix(tag: str) -> bytes:
    """Return the bytes before a tag's number: the length of the value, and the tag."""
    name = tag.encode("utf-8", "replace")
    tag_field = b"\x0a" + _varint(len(name)) + name + b"\x15"
    return b"\x0a" + _varint(len(tag_field) + 4) + tag_field


@lru_cache(maxsize=4096)
def _summary_prefix(tag: str) -> bytes:
    """Return the bytes before the number of a summary with one value."""
    prefix = _value_prefix(tag)
    return b"\x2a" + _varint(len(prefix) + 4) + prefix


def _single(number: float) -> bytes:
    try:
        return _float(number)
    except OverflowError:  # beyond the range of a 32-bit float
        return _float(float("inf") if number > 0 else float("-inf"))


def _varint(number: int) -> bytes:
    """Return an integer as protobuf encodes it; a negative one takes ten bytes."""
    number &= 2**64 - 1
    if number < 1 << 7:
        return bytes((number,))
    if number < 1 << 14:
        return bytes((number & 127 | 128, number >> 7))
    if number < 1 << 21:  # as the step of almost all jobs
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    encoded = bytearray()
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _framed(events: list[bytes], length: int) -> bytes:
    """Return events of one length as TFRecords."""
    head = _head(length)
    if len(events) < _MIN_VECTORIZED:
        return b"".join([head + event + _word(_masked(_checksum(event))) for event in events])
    import numpy as np  # noqa: PLC0415 - only with the extra `tensorboard`

    data = np.frombuffer(b"".join(events), np.uint8).reshape(len(events), length)
    table = np.array(_table(), np.uint32)
    checksums = np.full(len(events), _WORD, np.uint32)
    for column in data.T:
        checksums = table[(checksums ^ column) & 0xFF] ^ (checksums >> 8)
    checksums ^= _WORD
    masked = ((checksums >> 15 | checksums << 17) + np.uint32(_MASK)).astype("<u4")
    heads = np.broadcast_to(np.frombuffer(head, np.uint8), (len(events), len(head)))
    return bytes(np.hstack([heads, data, masked.view(np.uint8).reshape(len(events), 4)]).tobytes())


@lru_cache(maxsize=1024)
def _head(length: int) -> bytes:
    encoded = _length(length)
    return encoded + _word(_masked(_checksum(encoded)))


def _checksum(data: bytes) -> int:
    table, checksum = _table(), _WORD
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return checksum ^ _WORD


def _masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + _MASK) & _WORD


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    def entry(byte: int) -> int:
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        return byte

    return tuple(map(entry, range(256)))
