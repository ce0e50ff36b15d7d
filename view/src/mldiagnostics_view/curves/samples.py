"""First look at large files: pieces at equal distances, read first."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from mldiagnostics.runs.record_reader import RecordBlock

from mldiagnostics_view.limits import SAMPLE_PIECES, SAMPLED_OBJECTS, SAMPLED_PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.runs.record_files import RecordFile, RecordFiles


def sampled_blocks(files: RecordFiles, listed: Sequence[RecordFile]) -> Iterator[RecordBlock]:
    """Yield some whole lines of files, those of one file together.

    Args:
        files: Opens the files.
        listed: The files to sample, in their order.

    Raises:
        StoreError: The files cannot be read.
    """
    chosen = list(listed) if files.grows else [listed[at] for at in evenly(len(listed), SAMPLED_OBJECTS)]
    places = piece_offsets([file.size for file in chosen], SAMPLE_PIECES, SAMPLED_PIECE_BYTES)
    offsets = {file.key: starts for file, starts in zip(chosen, places, strict=True) if starts}
    for file, opened in files.open([file for file in chosen if file.key in offsets]):
        with opened:
            lines = b""
            for start in offsets[file.key]:
                opened.seek(start)
                lines += whole_lines_of(opened.read(SAMPLED_PIECE_BYTES), is_start=start == 0)
            yield RecordBlock(file.segment, lines)


def evenly(size: int, count: int) -> list[int]:
    """Return at most `count` positions at equal distances, with first and last.

    >>> evenly(9, 3), evenly(2, 3)
    ([0, 4, 8], [0, 1])
    """
    if size <= count:
        return list(range(size))
    return [at * (size - 1) // max(1, count - 1) for at in range(count)]


def piece_offsets(sizes: Sequence[int], pieces: int, piece_bytes: int) -> list[list[int]]:
    """Return the starts of pieces at equal distances in several successive files.

    No two pieces have a byte in common, and none reaches beyond its file, unless the file is smaller than a piece.

    >>> piece_offsets([100, 40], 4, 10)
    [[0, 43, 86], [30]]
    """
    offsets: list[list[int]] = []
    total = sum(sizes)
    wanted = iter(evenly(max(0, total - piece_bytes) + 1, pieces))
    offset = next(wanted, None)
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        starts: list[int] = []
        while offset is not None and (offset < end or end == total):
            start = max(0, min(offset - (end - size), size - piece_bytes))
            if size and (not starts or start >= starts[-1] + piece_bytes):
                starts.append(start)
            offset = next(wanted, None)
        offsets.append(starts)
    return offsets


def whole_lines_of(piece: bytes, *, is_start: bool) -> bytes:
    """Return the lines of a piece of a file without the two that it may cut."""
    begin = 0 if is_start else piece.find(b"\n") + 1
    return piece[begin : piece.rfind(b"\n") + 1] if begin or is_start else b""
