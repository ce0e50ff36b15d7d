"""The last value of each metric of a run, out of the ends of its files of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from mldiagnostics.runs.metric_lines import MetricLines
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.row import directory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs.record_files import RecordFile
    from mldiagnostics.runs.row import RunRow


_READ_BYTES = 4 * 1024 * 1024


def last_values(run: RunRow | str, *, most_bytes: int = _READ_BYTES) -> dict[str, float]:
    """Return the last value of each metric that was recorded lately.

    It is that of the newest attempt, there of the lowest rank, there of the first device. Only the newest records are
    read, first those of the newest attempt and the lowest ranks: a metric that was last recorded before them is left
    out.

    Args:
        run: A row, or the directory of a run: a path or URL.
        most_bytes: Bytes of records that are read.

    Returns:
        The values by the names of their metrics, sorted.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
        StoreError: The files cannot be read.

    Example:
        >>> last_values("mldiagnostics/my-run")  # doctest: +SKIP
        {'accuracy': 0.91, 'loss': 0.35}
    """
    files = record_files(directory_of(run))
    lengths = _newest(files.list(), most_bytes)
    lines = MetricLines(None)
    last: dict[str, tuple[tuple[float, ...], float]] = {}
    for file, opened in files.open([*lengths]):
        with opened:
            block = _whole_lines(opened, file.size, lengths[file])
        for key, (_, points) in lines.parse(block).items():
            age = (file.segment.attempt, -file.segment.rank, -(key.device or 0), points.t[-1])
            if key.metric not in last or last[key.metric][0] <= age:
                last[key.metric] = age, points.value[-1]
    return {name: value for name, (_, value) in sorted(last.items())}


def _newest(files: Sequence[RecordFile], most_bytes: int) -> dict[RecordFile, int]:
    """Return the files to read, with the length of the end of each."""
    lengths = {}
    for file in sorted(files, key=lambda each: (-each.segment.attempt, each.segment.rank, -each.segment.number)):
        if most_bytes <= 0:
            break
        lengths[file] = min(file.size, most_bytes)
        most_bytes -= lengths[file]
    return lengths


def _whole_lines(opened: BinaryIO, size: int, length: int) -> bytes:
    opened.seek(size - length)
    block = opened.read(length)
    first = block.find(b"\n") + 1 if length < size else 0
    return block[first : block.rfind(b"\n") + 1]
