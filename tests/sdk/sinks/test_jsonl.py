"""Records are in the run's local directory after each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import sink_maker
from support.records import RUN, origin, records_in

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.sinks import Sink


def numbers(start: int, count: int = 3) -> list[Record]:
    return [Record("metric", 1.0, "loss", float(number)) for number in range(start, start + count)]


def opened(url: str, storage: str = "/nowhere") -> Sink:
    sink = sink_maker(url).make(origin(storage))
    sink.open()
    return sink


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_each_batch_is_readable_at_once(form: str, tmp_path: Path) -> None:
    sink = opened("jsonl:", form.format(tmp_path))
    assert len(list((tmp_path / RUN / "records").iterdir())) == 1
    for start in (0, 3):
        sink.write(numbers(start))
        assert [each.value for each in records_in(tmp_path)] == [each.value for each in numbers(0, start + 3)]
    sink.close()


def test_the_url_can_name_another_root(tmp_path: Path) -> None:
    sink = opened(f"jsonl:{tmp_path}")
    sink.write(numbers(0))
    assert [each.value for each in records_in(tmp_path)] == [0.0, 1.0, 2.0]
