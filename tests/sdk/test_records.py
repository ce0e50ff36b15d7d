"""A record survives its line, and what is no line of ours is not taken for one."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.records import Record, decode, encode
from support import records

UNUSUAL = [math.nan, math.inf, -math.inf]


@given(records.records())
def test_a_record_survives_its_line(record: Record) -> None:
    assert decode(encode(record)) == record


@given(records.records())
def test_a_line_is_one_object_in_one_line_of_ascii(record: Record) -> None:
    line = encode(record)
    assert line.isascii()
    assert line.endswith("}\n")
    assert len(line.splitlines()) == 1
    assert json.loads(line)["v"] == 1


@pytest.mark.parametrize("number", UNUSUAL)
def test_what_is_no_ordinary_number_survives(number: float) -> None:
    record = decode(encode(Record("metric", 1.0, "loss", (number, number))))
    assert repr(decode(encode(Record("metric", number, "loss", 1.0))).t) == repr(number)
    single = decode(encode(Record("metric", 1.0, "loss", number)))
    assert repr((single.value, *record.value)) == repr((number,) * 3)  # type: ignore[misc]


@given(records.records(), st.data())
def test_a_line_that_was_cut_off_is_no_record(record: Record, data: st.DataObject) -> None:
    line = encode(record).rstrip()
    with pytest.raises(ValueError, match=r".+"):
        decode(line[: data.draw(st.integers(0, len(line) - 1))])


@pytest.mark.parametrize(
    "line", ["[]", "1", "null", "{}", '{"v":2,"kind":"metric","t":1,"name":"a","rank":0,"attempt":0}']
)
def test_what_is_of_no_known_schema_is_no_record(line: str) -> None:
    with pytest.raises(ValueError, match="no record of schema 1"):
        decode(line)


def test_what_a_later_version_adds_is_passed_over() -> None:
    known = Record("metric", 1.0, "loss", 0.5)
    assert decode(encode(known).replace('"v":1', '"v":1,"future":{"a":1}')) == known
