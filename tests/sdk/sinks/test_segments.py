"""Segment files hold whole batches in order, and DuckDB and pandas read them in one line."""

from __future__ import annotations

import errno
import math
import os
import shutil
from typing import TYPE_CHECKING, NoReturn

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.layout import record_segment
from mldiagnostics.pipeline.records import SEGMENT_HEAD, Record, decode, encode
from mldiagnostics.sinks import SinkUnavailable
from mldiagnostics.sinks.segments import Segments
from support.records import RUN, origin, records_in, run_program

if TYPE_CHECKING:
    from pathlib import Path

MANY = 25_000  # more than the lines from which DuckDB guesses columns
NUMBERS = (0.5, math.nan, math.inf, -math.inf)


def contents(directory: Path) -> list[list[Record]]:
    """Return the records of each file without its head."""
    files = sorted(directory.rglob("*.jsonl"))
    assert all(record_segment(str(file.relative_to(directory))) for file in files)
    parsed = [[decode(line) for line in file.read_bytes().splitlines()] for file in files]
    assert all(each[0].name == SEGMENT_HEAD and each[0].labels["run"] == RUN for each in parsed)
    return [each[1:] for each in parsed]


SIZES = st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=4), max_size=6)


@given(sizes=SIZES, max_bytes=st.integers(1, 2000))
def test_batches_are_whole_and_in_order_in_files_of_limited_size(
    sizes: list[list[int]], max_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("segments")
    segments = Segments(directory, origin(), max_bytes=max_bytes)
    batches = [
        [Record("metric", 1.0, "x" * size, 1.0, step=number) for size in batch] for number, batch in enumerate(sizes)
    ]
    for batch in batches:
        segments.append(batch)
    segments.close()
    files = contents(directory)
    assert [record for file in files for record in file] == [record for batch in batches for record in batch]
    for path, kept in zip(sorted(directory.rglob("*.jsonl")), files, strict=True):
        last = [record for record in kept if record.step == kept[-1].step]
        assert kept == last or path.stat().st_size - sum(len(encode(record)) for record in last) < max_bytes


def test_many_processes_share_a_directory(tmp_path: Path) -> None:
    everyone = [
        Segments(tmp_path, origin(rank=rank, incarnation=incarnation), max_bytes=1000)
        for rank in range(3)
        for incarnation in ("00000001", "00000002")
    ]
    for number in range(50):
        for segments in everyone:
            segments.append([Record("metric", 1.0, "loss", float(number))])
    files = contents(tmp_path)
    assert sorted(each.value for file in files for each in file) == sorted(list(map(float, range(50))) * 6)  # type: ignore[type-var]


def test_a_deleted_file_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    segments = Segments(tmp_path, origin(), max_bytes=10_000)
    record = Record("metric", 1.0, "loss", 0.5)
    segments.append([record])
    shutil.rmtree(tmp_path)
    segments.append([record])
    assert contents(tmp_path) == [[record]]


@pytest.mark.parametrize("reused", [False, True])
def test_a_closed_descriptor_is_replaced_and_not_written_to(tmp_path: Path, reused: bool) -> None:
    body = f"""
import os
from pathlib import Path
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks.segments import Segments
origin = Origin("a" * 64, "test", sys.argv[1], "0123abcd", "host")
segments = Segments(Path(sys.argv[1]) / "run", origin, max_bytes=10**9)
segments.append([Record("metric", 1.0, "loss", 0.5)])
os.closerange(3, 64)
others = [open(Path(sys.argv[1]) / str(number), "w") for number in range(8)] if {reused} else []
segments.append([Record("metric", 1.0, "loss", 0.25)])
segments.close()
print([os.fstat(other.fileno()).st_size for other in others])
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == (f"{[0] * 8 if reused else []}\n", "")
    assert [each.value for each in records_in(tmp_path)] == [0.5, 0.25]


def test_a_batch_is_written_whole_after_a_full_disk(tmp_path: Path) -> None:
    body = """
import resource
from pathlib import Path
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import SinkUnavailable
from mldiagnostics.sinks.segments import Segments
origin = Origin("a" * 64, "test", sys.argv[1], "0123abcd", "host")
segments = Segments(Path(sys.argv[1]) / "run", origin, max_bytes=10**9)
batch = [Record("metric", 1.0, "loss", float(number)) for number in range(10)]
segments.append(batch)
size = segments.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
for _ in range(3):
    try:
        segments.append(batch)
    except SinkUnavailable as error:
        print("raise the limit on file sizes" in str(error), segments.path.stat().st_size == size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
segments.append(batch)
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("True True\n" * 3, "")
    assert [each.value for each in records_in(tmp_path)] == [float(number) for number in range(10)] * 2


def read_only(*_: object) -> NoReturn:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_disk_that_can_neither_be_written_nor_truncated_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = Segments(tmp_path, origin(), max_bytes=10**9)
    record = Record("metric", 1.0, "loss", 0.5)
    segments.append([record])
    with monkeypatch.context() as disk:
        for name in ("write", "ftruncate"):
            disk.setattr(os, name, read_only)
        for _ in range(2):
            with pytest.raises(SinkUnavailable, match="Read-only file system"):
                segments.append([record])
    segments.append([record])
    segments.close()
    assert [each for file in contents(tmp_path) for each in file] == [record] * 2


def test_a_path_that_is_not_a_directory_is_an_error_until_it_is_one(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.write_text("in the way")
    segments = Segments(place, origin(), max_bytes=1000)
    with pytest.raises(SinkUnavailable, match=r"run/records/.*: Not a directory; .*storage="):
        segments.open()
    place.unlink()
    record = Record("metric", 1.0, "loss", 0.5)
    segments.append([record])
    assert contents(place) == [[record]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Files of two ranks: many metrics first, all other kinds at the end."""
    for rank in range(2):
        segments = Segments(tmp_path, origin(rank=rank), max_bytes=10**9)
        segments.append([Record("metric", 5.0, "loss", NUMBERS[i % 4], i, rank=rank, unit="1") for i in range(MANY)])
        segments.append(
            [
                Record("metric", 5.0, "util", (0.25, math.nan), 1, {"host": "a"}, rank, unit="%"),
                Record("event", 6.0, "note", None, None, {}, rank, payload={"message": "hi", "deep": {"list": [1]}}),
            ]
        )
    return tmp_path


def test_duckdb_reads_a_run_in_one_line_with_one_type_for_each_column(directory: Path) -> None:
    run = duckdb.read_json(f"{directory}/records/*.jsonl")
    assert dict(zip(run.columns, map(str, run.types), strict=True)) == {
        "v": "BIGINT",
        "kind": "VARCHAR",
        "t": "DOUBLE",
        "name": "VARCHAR",
        "value": "DOUBLE",
        "values": "DOUBLE[]",
        "step": "BIGINT",
        "labels": "MAP(VARCHAR, VARCHAR)",
        "unit": "VARCHAR",
        "rank": "BIGINT",
        "attempt": "BIGINT",
        "payload": "MAP(VARCHAR, JSON)",
        "nonfinite": "VARCHAR",
    }
    losses = run.filter("name = 'loss'")
    assert losses.aggregate("rank, count(*), count(value)").order("rank").fetchall() == [
        (0, MANY, MANY // 4),
        (1, MANY, MANY // 4),
    ]
    numbers = losses.project("coalesce(value, nonfinite::DOUBLE) AS number")
    assert numbers.aggregate("count_if(isnan(number)), count_if(isinf(number))").fetchall() == [(2 * MANY // 4, MANY)]
    series = run.filter("name = 'util'").project("values[1], values[2], nonfinite, labels['host']")
    assert series.fetchall() == [(0.25, None, "NaN", "a")] * 2
    notes = run.filter("name = 'note'").project("payload['message']->>'$', payload['deep']")
    assert notes.fetchall() == [("hi", '{"list":[1]}')] * 2


def test_pandas_reads_a_file_in_one_line(directory: Path) -> None:
    frame = pd.read_json(next(directory.glob("records/a0-r1-*.jsonl")), lines=True)
    losses = frame[frame["name"] == "loss"]
    assert list(losses["step"]) == list(range(MANY))
    assert str(losses["value"].dtype) == "float64"
    assert losses["value"].isna().sum() == 3 * MANY // 4
    assert (losses["nonfinite"] == "Infinity").sum() == MANY // 4
    assert [series[0] for series in frame[frame["name"] == "util"]["values"]] == [0.25]
    assert list(frame[frame["name"] == "note"]["payload"]) == [{"message": "hi", "deep": {"list": [1]}}]
