"""The expression for lines of the SDK and JSON read the same points."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.runs.metric_lines import CurveKey, MetricLines
from mldiagnostics.runs.points import NO_STEP

if TYPE_CHECKING:
    import pytest

NAMES = st.sampled_from(["loss", "l", 'quo"te', "back\\slash", "größe", "loss,rank", "a.b", "{", "metric"])
LABELS = st.dictionaries(st.sampled_from(["split", "name", "scope", "ä"]), st.text(max_size=4), max_size=2)
FLOATS = st.floats()
RECORDS = st.builds(
    Record,
    kind=st.sampled_from(["metric", "metric", "metric", "event", "heartbeat"]),
    t=st.floats(0, 4e9),
    name=NAMES,
    value=FLOATS | st.lists(FLOATS, max_size=3).map(tuple),
    step=st.none() | st.integers(-(10**20), 10**20),
    labels=LABELS,
    rank=st.integers(0, 3),
    attempt=st.integers(0, 2),
    unit=st.sampled_from(["", "1", "%", "s"]),
)
GARBAGE = st.sampled_from([
    "", "nonsense", "{}", "[]",
    '{"v":1,"kind":"metric","t":1.0,"name":"loss","rank":0,"attempt":0,"value":1e1e1,"unit":"1"}',
    '{"v":2,"kind":"metric","t":1.0,"name":"loss","rank":0,"attempt":0,"value":1.0,"unit":"1"}',
    '{"v":1,"kind":"metric","t":1.0,"na{"v":1,"kind":"metric","t":1.0,"name":"loss","rank":0,"attempt":0,"value":2.0}',
    '{"v":1,"kind":"metric","t":1.0,"name":7,"rank":0,"attempt":0,"value":2.0}', "[" * 5000,
])  # fmt: skip

Rows = dict[tuple[object, ...], list[tuple[float, int, str]]]


def points(lines: MetricLines, blocks: list[bytes]) -> Rows:
    rows: Rows = {}
    for block in blocks:
        for key, curve in lines.parse(block).items():
            columns = zip(curve.points.t, curve.points.step, map(repr, curve.points.value), strict=True)
            rows.setdefault((*key, curve.unit), []).extend(columns)
    return rows


def expected(records: list[Record], names: set[str] | None) -> Rows:
    rows: Rows = {}
    for record in records:
        if record.kind != "metric" or (names is not None and record.name not in names):
            continue
        step = record.step if record.step is not None and abs(record.step) < 2**63 else NO_STEP
        values = record.value if isinstance(record.value, tuple) else (record.value,)
        for device, value in enumerate(values):
            index = device if isinstance(record.value, tuple) else None
            key = CurveKey(record.name, tuple(sorted(record.labels.items())), index)
            rows.setdefault((*key, record.unit), []).append((record.t, step, repr(value)))
    return rows


def as_others_write(record: Record) -> str:
    return json.dumps(json.loads(encode(record)), sort_keys=True) + "\n"


@given(st.lists(RECORDS, max_size=8), st.none() | st.sets(NAMES, max_size=3), st.booleans())
def test_each_point_is_read_however_the_line_is_written(records: list[Record], names: Any, others: bool) -> None:
    text = "".join(as_others_write(record) if others and number % 2 else encode(record) for number, record in
                   enumerate(records))  # fmt: skip
    lines = MetricLines(names)
    read = points(lines, [text.encode()] if text else [])
    assert {key[:3] for key in read} == {key[:3] for key in expected(records, names)}
    merged = [sorted(row for key, rows in each.items() for row in rows) for each in (read, expected(records, names))]
    assert merged[0] == merged[1]
    assert lines.bad_lines == 0


@given(st.lists(RECORDS.map(encode) | GARBAGE.map(lambda text: f"{text}\n"), max_size=10), st.data())
def test_blocks_of_any_size_give_the_same(written: list[str], data: st.DataObject) -> None:
    whole, cut = MetricLines({"loss"}), MetricLines({"loss"})
    at = data.draw(st.integers(0, len(written)))
    blocks = ["".join(written[:at]).encode(), "".join(written[at:]).encode()]
    one = points(whole, ["".join(written).encode()])
    two = points(cut, blocks)
    assert [{key[:3]: None for key in one}, sorted(r for rows in one.values() for r in rows)] == [
        {key[:3]: None for key in two},
        sorted(r for rows in two.values() for r in rows),
    ]
    assert whole.bad_lines == cut.bad_lines


def test_broken_lines_are_counted() -> None:
    lines = MetricLines({"loss"})
    good = encode(Record("metric", 1.0, "loss", 2.0, unit="1"))
    [curve] = lines.parse(f"{good}nonsense\n{good[:-9]}\n{good}\n".encode()).values()
    assert (len(curve.points), lines.bad_lines) == (2, 2)


def test_lines_of_the_sdk_are_not_parsed_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(line: bytes) -> Record:
        raise AssertionError(line)

    monkeypatch.setattr("mldiagnostics.runs.metric_lines.decode", fail)
    records = [
        Record("event", 1.0, "goodput", payload={"job_name": "loss", "rank": 3}),
        Record("metric", 1.5, "other", (1.0, 2.0), 3),
        Record("metric", 2.0, "loss", 0.5, 7, {"split": "eval"}, unit="1"),
        Record("metric", 3.0, "loss", math.nan, None, {"split": "eval"}, unit="1"),
        Record("metric", 4.0, "loss", -math.inf, 9, {"split": "eval"}, unit="1"),
    ]
    read = points(MetricLines({"loss"}), ["".join(map(encode, records)).encode()])
    assert read == {
        ("loss", (("split", "eval"),), None, "1"): [(2.0, 7, "0.5"), (3.0, NO_STEP, "nan"), (4.0, 9, "-inf")]
    }


def test_labels_in_another_order_are_the_same_curve() -> None:
    labels = [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1", "b": "2"}]
    text = "".join(encode(Record("metric", 1.0, "loss", float(at), at, each)) for at, each in enumerate(labels))
    [curve] = MetricLines(None).parse(text.encode()).values()
    assert list(curve.points.step) == [0, 1, 2]
