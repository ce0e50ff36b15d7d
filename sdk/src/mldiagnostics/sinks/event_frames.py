"""TensorBoard's file format for scalars: events as protobuf encodes them, framed as TFRecords; pure.

A step of a job is an event, so a monitor that starts late writes thousands at once. Protobuf objects and TensorBoard's
checksum, one byte after the other in Python, take 35 µs for each; these take 2.

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

__all__ = ["frames", "scalar_event", "version_event"]

_WORTH_COLUMNS = 16
"""How many events of one length are checked together, and not one by one."""

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_WORD = 2**32 - 1

_moment = struct.Struct("<d").pack
_float = struct.Struct("<f").pack
_length = struct.Struct("<Q").pack
_word = struct.Struct("<I").pack


def scalar_event(wall_time: float, step: int, scalars: Iterable[tuple[str, float]]) -> bytes:
    """Return an event with the numbers of one step, each with its tag."""
    values = b"".join([_value(tag, number) for tag, number in scalars])
    shown = b"\x10" + _varint(step) if step else b""
    return b"\x09" + _moment(wall_time) + shown + b"\x2a" + _varint(len(values)) + values


def version_event(wall_time: float) -> bytes:
    """Return the event that a file begins with."""
    version = b"brain.Event:2"
    return b"\x09" + _moment(wall_time) + b"\x1a" + _varint(len(version)) + version


def frames(events: Sequence[bytes]) -> bytes:
    """Return events as a piece of a TFRecord file."""
    return b"".join([_framed(list(alike), length) for length, alike in groupby(events, len)])


def _value(tag: str, number: float) -> bytes:
    before, after = _around(tag)
    return before + after + _single(number)


@lru_cache(maxsize=4096)
def _around(tag: str) -> tuple[bytes, bytes]:
    """Return what stands before the number of a tag: the length of both, and the tag."""
    name = tag.encode("utf-8", "replace")
    named = b"\x0a" + _varint(len(name)) + name + b"\x15"
    return b"\x0a" + _varint(len(named) + 4), named


def _single(number: float) -> bytes:
    try:
        return _float(number)
    except OverflowError:  # beyond what a float of 4 bytes holds
        return _float(float("inf") if number > 0 else float("-inf"))


def _varint(number: int) -> bytes:
    """Return a whole number as protobuf writes it; one below zero takes ten bytes."""
    number &= 2**64 - 1
    if number < 128:
        return bytes((number,))
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _framed(events: list[bytes], length: int) -> bytes:
    """Return events of one length, each in its frame."""
    head = _head(length)
    if len(events) < _WORTH_COLUMNS:
        return b"".join([head + event + _word(_masked(_checksum(event))) for event in events])
    import numpy as np  # noqa: PLC0415 - comes with TensorBoard

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
    written = _length(length)
    return written + _word(_masked(_checksum(written)))


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
