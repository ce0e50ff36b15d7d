"""A block of one curve gives the points that JSON gives; a block of several is left to others."""

from __future__ import annotations

import json
import re
from itertools import repeat
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.runs.metric_lines import MetricLines
from mldiagnostics.runs.points import NO_STEP, PointColumns, PointSampler
from mldiagnostics.runs.uniform_block import uniform_points

if TYPE_CHECKING:
    from mldiagnostics.runs.uniform_block import UniformPoints

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["loss", "loss1", "loss2", "e", "-1", "1e5", '"value":', '","step":5,"unit":"'])
POINTS = st.tuples(st.floats(0, 4e9), FINITE, st.integers(-(10**18) + 1, 10**18 - 1))
HEADS = st.tuples(
    NAMES,
    st.dictionaries(st.sampled_from(["layer", '"t":5,"name":']), st.sampled_from(["1", "2", "e"]), max_size=2),
    st.sampled_from(["", "1", "e"]),
)
LINE = re.compile(
    rb'\n\{"v":1,"kind":"metric","t":([^,]+),"name":("(?:[^"\\]|\\.)*"),"rank":0,"attempt":0,"value":([^,}]+)()'
    rb'(?:,"step":([^,}]+))?(?:,"labels":(\{[^{}]*\}))?(?:,"unit":("[^"]*"))?\}(?=\n)'
)

Point = tuple[float, float, int]
Head = tuple[str, dict[str, str], str]


def line(head: Head, point: Point, *, has_step: bool) -> bytes:
    name, labels, unit = head
    t, value, step = point
    return encode(Record("metric", t, name, value, step if has_step else None, labels, unit=unit)).encode()


def parsed(lines: list[bytes]) -> UniformPoints | None:
    block = b"\n" + b"".join(lines)
    first = LINE.match(block)
    assert first is not None
    return uniform_points(block, first, len(lines))


@given(HEADS, st.lists(POINTS, min_size=1, max_size=30), st.booleans())
def test_the_points_of_one_curve_are_those_of_json(head: Head, points: list[Point], has_step: bool) -> None:
    read = parsed([line(head, point, has_step=has_step) for point in points])
    assert read is not None
    t, value, step = zip(*points, strict=True)
    steps = list(step) if has_step else [NO_STEP] * len(step)
    assert [list(read.t), list(read.value), list(read.step)] == [list(t), list(value), steps]
    assert [read.t[at] for at in range(len(t))] == list(t)
    assert [read.step[at] for at in range(len(t))] == steps
    sampled = [PointSampler(5), PointSampler(5)]
    sampled[0].extend(read)
    sampled[1].extend(PointColumns(t, steps, value))
    one, two = (each.sampled() for each in sampled)
    assert [one.t, one.step, one.value] == [two.t, two.step, two.value]


@given(HEADS, HEADS, POINTS, st.tuples(st.booleans(), st.booleans()))
def test_points_of_two_curves_are_never_joined(
    one: Head, other: Head, point: Point, has_step: tuple[bool, bool]
) -> None:
    lines = [line(head, point, has_step=has) for head, has in zip((one, other), has_step, strict=True)]
    assert parsed(lines) is None or (one[0], sorted(one[1].items()), one[2]) == (
        other[0],
        sorted(other[1].items()),
        other[2],
    )


def test_steps_that_do_not_fit_are_missing() -> None:
    records = [Record("metric", 1.0, "loss", 2.0, step, unit="1") for step in (5, 10**30, 7)]
    read = parsed([encode(record).encode() for record in records])
    assert read is not None
    assert list(read.step) == [5, NO_STEP, 7] == [read.step[at] for at in range(3)]


def test_a_run_of_one_metric_is_read_in_this_way() -> None:
    lines = [line(("loss", {}, "1"), (1.0 + at, at / 7, at), has_step=True) for at in range(50)]
    [curve] = MetricLines({"loss"}).parse(b"".join(lines)).values()
    assert type(curve.points).__name__ == "UniformPoints"
    values = [json.loads(each)["value"] for each in lines]
    assert list(zip(curve.points.step, curve.points.value, repeat("1"))) == [
        (at, v, "1") for at, v in enumerate(values)
    ]
