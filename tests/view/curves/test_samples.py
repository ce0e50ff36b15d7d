"""Samples of large runs: their places, curves while the rest is read, and exact curves in the end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_view.curves.progress import ReadingStages, ReadProgress
from mldiagnostics_view.curves.queries import metrics_of
from mldiagnostics_view.curves.reader import CurveReader
from mldiagnostics_view.curves.samples import evenly, piece_offsets, whole_lines_of
from mldiagnostics_view.curves.windows import Buckets, Window
from mldiagnostics_view.limits import SAMPLED_BYTES
from support.run_files import metric_name, write_large_run

if TYPE_CHECKING:
    from pathlib import Path

METRICS = 50
STEPS = 4000
STEPS_OF_FILE = 900


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(1, 40), st.integers(1, 300))
def test_pieces_lie_apart_in_their_files_from_the_first_byte_to_the_last(
    sizes: list[int], pieces: int, piece_bytes: int
) -> None:
    offsets = piece_offsets(sizes, pieces, piece_bytes)
    assert len(offsets) == len(sizes)
    assert sum(map(len, offsets)) <= pieces
    for starts, size in zip(offsets, sizes, strict=True):
        assert all(after - before >= piece_bytes for before, after in pairwise(starts))
        assert all(0 <= start <= max(0, size - piece_bytes) for start in starts)
        assert size or not starts
    used = [(at, start) for at, starts in enumerate(offsets) for start in starts]
    filled = [at for at, size in enumerate(sizes) if size]
    if filled and pieces > 1:
        assert used[0] == (filled[0], 0)
        last, start = used[-1]
        assert sum(sizes[: last + 1]) - sizes[last] + start + 3 * piece_bytes >= sum(sizes)


@given(st.integers(0, 500), st.integers(1, 50))
def test_places_are_even(size: int, count: int) -> None:
    places = evenly(size, count)
    assert len(places) == min(size, count)
    assert len({after - before for before, after in pairwise(places)} - {0}) <= 2
    assert not places or places[0] == 0
    if count > 1 and places:
        assert places[-1] == size - 1


@given(st.lists(st.integers(0, 8), max_size=20), st.data())
def test_pieces_have_whole_lines_alone(lengths: list[int], data: st.DataObject) -> None:
    lines = [b"%d%s\n" % (100 + number, b"." * length) for number, length in enumerate(lengths)]
    text = b"".join(lines)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    kept = whole_lines_of(text[start:end], is_start=start == 0).splitlines(keepends=True)
    assert set(kept) <= set(lines)
    assert text[start:end].count(b"\n") - len(kept) <= (start > 0)


def test_a_large_run_is_sampled_first_and_exact_when_it_was_read(tmp_path: Path) -> None:
    records = tmp_path / "records"
    write_large_run(records, "a0-r0-00000000", metrics=METRICS, steps=range(STEPS), file_steps=STEPS_OF_FILE)
    assert sum(file.stat().st_size for file in records.iterdir()) > SAMPLED_BYTES
    reader = CurveReader(str(tmp_path))
    assert reader.sample()
    listed = metrics_of(reader)["metrics"]
    assert [metric["metric"] for metric in listed] == [metric_name(at) for at in range(METRICS)]
    assert listed[0]["steps"] == [0, STEPS - 1]
    assert listed[0]["lastValue"] == STEPS - 1
    window = Window("step", 0, STEPS - 1, 40)
    counts = []
    while True:
        buckets = _filled(reader, window)
        counts.append(sum(buckets.count))
        assert all(buckets.count), "a sample is spread over all of the run"
        for at, (low, high) in enumerate(zip(buckets.low, buckets.high, strict=True)):
            assert at == window.bucket(int(low)) == window.bucket(int(high))
        if reader.read(0.0):
            break
    assert counts[0] < STEPS / 5
    assert len(counts) > 2
    assert counts == sorted(counts), "no point is lost, and none counts twice"
    exact = _filled(reader, window)
    steps = [[step for step in range(STEPS) if window.bucket(step) == at] for at in range(40)]
    assert list(exact.count) == [len(each) for each in steps]
    assert list(exact.low) == [each[0] + 0.007 for each in steps]
    assert list(exact.high) == [each[-1] + 0.007 for each in steps]
    assert not reader.sample(), "all files are known"
    reader.close()


def test_a_file_that_is_replaced_after_its_sample_leaves_nothing_of_it(tmp_path: Path) -> None:
    records = tmp_path / "records"
    write_large_run(records, "a0-r0-00000000", metrics=METRICS, steps=range(STEPS), file_steps=STEPS)
    reader = CurveReader(str(tmp_path))
    assert reader.sample()
    write_large_run(records, "a0-r0-00000000", metrics=1, steps=range(10, 20), file_steps=STEPS)
    while not reader.read(1.0):
        pass
    [metric] = metrics_of(reader)["metrics"]
    assert (metric["metric"], metric["count"], metric["steps"]) == (metric_name(0), 10, [10, 19])
    reader.close()


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 5), st.booleans()), max_size=40))
def test_pages_load_again_at_few_stages_and_after_each_change(looks: list[tuple[int, int, int, bool]]) -> None:
    stages = ReadingStages()
    shown = ""
    for read, unread, revision, is_complete in looks:
        before, shown = shown, stages.after(ReadProgress(read, read + unread, revision, 0, 0), is_complete=is_complete)
        if is_complete:
            assert shown.endswith(f" {revision}")
        elif 100 * unread < 20 * (read + unread):
            assert shown == before
    assert len({stages.after(ReadProgress(at, 1000, at, 0, 0), is_complete=False) for at in range(1000)}) <= 5


def _filled(reader: CurveReader, window: Window) -> Buckets:
    buckets = Buckets(window)
    for of, curve in reader.curves(frozenset({metric_name(7)})).items():
        assert of.rank == 0
        curve.fill(buckets)
    return buckets
