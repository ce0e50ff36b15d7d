"""A file over ranges of an object, whose first response may be cut off."""

from collections.abc import Iterator

import pytest
from mldiagnostics.errors import StoreUnreachable
from mldiagnostics.store.object_reader import CHUNK_BYTES, PIECE_BYTES, ObjectReader

CONTENT = bytes(range(256)) * 8


def a_range(start: int, stop: int) -> memoryview:
    return memoryview(CONTENT)[start:stop]


def refused(start: int, stop: int) -> memoryview:
    raise AssertionError(f"requested {start} to {stop}")


def test_one_response_gives_all_of_a_small_object() -> None:
    reader = ObjectReader(len(CONTENT), CONTENT[:100], iter([CONTENT[100:700], CONTENT[700:]]), refused)
    assert reader.read() == CONTENT


def test_the_first_bytes_do_not_wait_for_the_rest_of_the_response() -> None:
    def rest() -> Iterator[bytes]:
        raise AssertionError("waited for the rest")
        yield b""

    with ObjectReader(len(CONTENT), CONTENT[:100], rest(), refused) as reader:
        assert reader.read(60) == CONTENT[:60]
        assert reader.read(60) == CONTENT[60:100]


@pytest.mark.parametrize("received", [0, 1, 500])
def test_a_response_that_was_left_too_long_is_replaced_by_a_range(received: int) -> None:
    def rest() -> Iterator[bytes]:
        yield CONTENT[100 : 100 + received]
        raise StoreUnreachable("the response was cut off")

    reader = ObjectReader(len(CONTENT), CONTENT[:100], rest(), a_range)
    assert reader.read() == CONTENT


def test_a_position_far_behind_the_first_response_is_a_range_of_its_own() -> None:
    size = 9 << 20
    reader = ObjectReader(size, b"first", iter([b"never"]), lambda start, _: memoryview(b"%d" % start))
    reader.seek(8 << 20)
    assert reader.read(7) == b"8388608"
    reader.seek(0)
    assert reader.read(1) == b"0"


@pytest.mark.parametrize("start", [0, 50, 100, 700, len(CONTENT)])
def test_the_rest_of_an_object_is_one_read_from_every_position(start: int) -> None:
    reader = ObjectReader(len(CONTENT), CONTENT[:100], iter([CONTENT[100:700], CONTENT[700:]]), a_range)
    reader.seek(start)
    assert reader.readall() == CONTENT[start:]
    assert (reader.tell(), reader.readall()) == (len(CONTENT), b"")
    reader.seek(1)
    assert reader.readall() == CONTENT[1:]


def test_an_object_of_many_ranges_is_one_read() -> None:
    content = bytes(range(251)) * 40_000
    ranges: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> memoryview:
        ranges.append((start, stop))
        return memoryview(content)[start:stop]

    reader = ObjectReader(len(content), content[:100], iter([content[100:CHUNK_BYTES]]), read)
    assert reader.read() == content
    assert ranges == [(CHUNK_BYTES, 2 * CHUNK_BYTES), (2 * CHUNK_BYTES, len(content))]


def test_ranges_after_a_jump_begin_small_and_grow() -> None:
    content = bytes(range(251)) * 80_000
    ranges: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> memoryview:
        ranges.append((start, stop - start))
        return memoryview(content)[start:stop]

    reader = ObjectReader(len(content), content[:100], iter([content[100:CHUNK_BYTES]]), read)
    for place in (3 * CHUNK_BYTES, 2 * CHUNK_BYTES):
        reader.seek(place)
        assert reader.read(1) == content[place : place + 1]
    assert ranges == [(3 * CHUNK_BYTES, PIECE_BYTES), (2 * CHUNK_BYTES, PIECE_BYTES)]
    assert reader.read() == content[2 * CHUNK_BYTES + 1 :]
    assert [size for _, size in ranges[2:8]] == [PIECE_BYTES << at for at in (1, 2, 3, 4, 5, 6)]
