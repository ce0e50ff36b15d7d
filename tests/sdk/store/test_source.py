"""Data is read once, whole, in bounded pieces, with correct size and digests."""

from __future__ import annotations

import array
import hashlib
import io

from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.store.source import PIECE_BYTES, UploadSource

BYTES = st.binary(max_size=300) | st.sampled_from([PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES]).map(bytes)


@given(st.lists(BYTES, max_size=3))
@settings(max_examples=30)
def test_every_form_of_data_is_read_whole_in_bounded_pieces(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    for data in (whole, bytearray(whole), memoryview(whole), io.BytesIO(whole), parts, iter(parts)):
        source = UploadSource(data, md5=True)
        pieces = [bytes(piece) for piece in source]
        assert b"".join(pieces) == whole
        assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
        assert source.bytes == len(whole)
        assert source.sha256() == hashlib.sha256(whole).hexdigest()
        assert source.md5 == hashlib.md5(whole, usedforsecurity=False).digest()


def test_only_bytes_have_a_size_hint() -> None:
    numbers = memoryview(array.array("q", range(10)))
    assert UploadSource(numbers).size_hint == 80
    assert b"".join(UploadSource(numbers)) == numbers.tobytes()
    assert UploadSource(io.BytesIO(b"x")).size_hint is None
    assert UploadSource([b"x"]).size_hint is None


def test_drain_completes_the_digests() -> None:
    source = UploadSource([b"a", b"b", b"c"])
    assert bytes(next(iter(source))) == b"a"
    source.drain()
    assert source.sha256() == hashlib.sha256(b"abc").hexdigest()
