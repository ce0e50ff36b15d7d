"""Blocks of whole lines are the file, in pieces that fit into memory."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.log.blocks import BLOCK_BYTES, MAX_LINE_BYTES, ReadPosition, whole_lines

PIECES = 256


class Endless:
    """A line that does not end for 64 MiB, and two more."""

    def __init__(self) -> None:
        self._left = PIECES

    def read(self, size: int, /) -> bytes:
        self._left -= 1
        return b"x" * size if self._left >= 0 else b"y\nz\n" if self._left == -1 else b""


@given(st.lists(st.sampled_from([0, 1, 1000, MAX_LINE_BYTES // 12]), max_size=12), st.booleans())
def test_the_blocks_are_the_file(lengths: list[int], whole: bool) -> None:
    text = b"\n".join(b"a" * length for length in lengths) + b"\n" * whole
    blocks = list(whole_lines(io.BytesIO(text)))
    assert b"".join(block for block, _ in blocks) == text[: text.rfind(b"\n") + 1]
    assert [end for _, end in blocks][-1:] == [text.rfind(b"\n") + 1][: len(blocks)]
    ended = b"".join(block for block, _ in whole_lines(io.BytesIO(text), ended=True))
    assert ended == (text if text.endswith(b"\n") or not text else text + b"\n")


def test_a_line_without_end_is_never_held() -> None:
    blocks = list(whole_lines(Endless(), ended=True))
    assert max(len(block) for block, _ in blocks) <= MAX_LINE_BYTES + 2 * BLOCK_BYTES
    assert b"".join(block for block, _ in blocks).endswith(b"y\nz\n")
    assert blocks[-1][1] == PIECES * BLOCK_BYTES + 4


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 7))
def test_a_position_reads_each_whole_line_once_while_the_file_grows(lines: list[bytes], pieces: int) -> None:
    text = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    position, read = ReadPosition(), b""
    for piece in range(1, pieces + 1):
        file = io.BytesIO(text[: len(text) * piece // pieces])
        assert position.is_in(file)
        for block, end in position.new_lines(file):
            read += block
            position.move(block, end)
    assert (read, position.offset) == (text, len(text))
    assert text.startswith(position.head)
    assert text.endswith(position.tail)


@pytest.mark.parametrize("other", [b"X" * 300 + b"\n", b"a" * 299 + b"X\n", b"a" * 10], ids=["start", "end", "shorter"])
def test_a_position_is_not_in_another_file(other: bytes) -> None:
    position = ReadPosition()
    text = b"a" * 300 + b"\n"
    for block, end in position.new_lines(io.BytesIO(text)):
        position.move(block, end)
    assert position.is_in(io.BytesIO(text + b"more"))
    assert not position.is_in(io.BytesIO(other))
