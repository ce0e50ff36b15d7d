"""The last value of each metric is that of the curves, as long as it is in the newest records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs import last_values
from mldiagnostics.store import open_store
from support.run_files import put_records

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

START = 1_700_000_000.0


def put(root: Path, file: str, *points: tuple[float, str, float]) -> None:
    put_records(open_store(str(root)), "run", file, *(Record("metric", START + t, name, v) for t, name, v in points))


def test_the_newest_attempt_and_its_lowest_rank_count(tmp_path: Path) -> None:
    put(tmp_path, "a0-r0-aaaaaaaa-00001", (50.0, "loss", 9.0), (51.0, "eval", 0.7))
    put(tmp_path, "a1-r0-bbbbbbbb-00001", (20.0, "loss", 5.0))
    put(tmp_path, "a1-r0-bbbbbbbb-00002", (21.0, "loss", 4.0))
    put(tmp_path, "a1-r1-cccccccc-00001", (30.0, "loss", 3.0), (30.0, "late", float("inf")))
    assert last_values(str(tmp_path / "run")) == {"eval": 0.7, "late": float("inf"), "loss": 4.0}


def test_a_run_without_records_has_none(tmp_path: Path) -> None:
    assert last_values(str(tmp_path / "run")) == {}


@settings(max_examples=30)
@given(most=st.integers(0, 5000), count=st.integers(1, 40))
def test_a_bounded_read_has_the_same_values_or_fewer(
    tmp_path_factory: pytest.TempPathFactory, most: int, count: int
) -> None:
    root = tmp_path_factory.mktemp("runs")
    for number in (1, 2):
        points = [(number * 100.0 + at, f"metric-{at % 7}", at / number) for at in range(count)]
        put(root, f"a0-r0-aaaaaaaa-{number:05}", *points)
    whole, part = last_values(str(root / "run")), last_values(str(root / "run"), most_bytes=most)
    assert part.items() <= whole.items()
    assert len(whole) == min(count, 7)
    newest = (root / "run" / "records" / "a0-r0-aaaaaaaa-00002.jsonl").read_bytes()
    last_line = newest.splitlines(keepends=True)[-1]
    assert bool(part) == (most >= len(newest) or most > len(last_line))
