"""A record survives its line, and other lines are rejected."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record, decode, encode
from mldiagnostics.text.strict_json import finite
from support import records

UNUSUAL = [math.nan, math.inf, -math.inf]


@given(records.records())
def test_a_record_survives_its_line(record: Record) -> None:
    payload = None if record.payload is None else finite(record.payload)
    assert decode(encode(record)) == record._replace(payload=payload)


@given(records.records())
def test_a_line_is_one_object_in_one_line_of_ascii(record: Record) -> None:
    line = encode(record)
    assert line.isascii()
    assert line.endswith("}\n")
    assert len(line.splitlines()) == 1
    assert json.loads(line)["v"] == 1


NUMBERS = st.sampled_from(UNUSUAL) | st.floats()


@given(NUMBERS, st.lists(NUMBERS, max_size=5))
def test_every_number_survives_a_line_that_strict_parsers_accept(number: float, series: list[float]) -> None:
    single, several = Record("metric", 1.0, "loss", number), Record("metric", 1.0, "loss", tuple(series))
    for record in (single, several):
        orjson.loads(encode(record))
        assert repr(decode(encode(record)).value) == repr(record.value)


@given(records.texts(), st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.sampled_from(["", "s"]))
def test_a_plain_metric_is_written_as_any_other(name: str, value: float, step: int, unit: str) -> None:
    plain = Record("metric", 1.5, name, value, step, rank=2, attempt=1, unit=unit)
    labelled = plain._replace(labels={"split": "test"})
    assert encode(plain) == encode(labelled).replace(',"labels":{"split":"test"}', "")


LINES = [
    (math.nan, {"value": None, "nonfinite": "NaN"}),
    (-math.inf, {"value": None, "nonfinite": "-Infinity"}),
    ((0.5, math.inf, math.nan), {"values": [0.5, None, None], "nonfinite": "Infinity,NaN"}),
    (0.5, {"value": 0.5}),
    ((0.5, 1.0), {"values": [0.5, 1.0]}),
]


@pytest.mark.parametrize(("value", "shown"), LINES)
def test_a_column_keeps_its_type_and_the_number_its_name(value: Any, shown: dict[str, Any]) -> None:
    line = orjson.loads(encode(Record("metric", 1.0, "loss", value)))
    assert {key: line[key] for key in ("value", "values", "nonfinite") if key in line} == shown


def test_a_payload_has_names_for_nonfinite_numbers() -> None:
    payload = {"deep": [math.nan, {"up": math.inf, "down": -math.inf}], "fine": 0.5}
    line = orjson.loads(encode(Record("event", 1.0, "note", payload=payload)))
    assert line["payload"] == {"deep": ["NaN", {"up": "Infinity", "down": "-Infinity"}], "fine": 0.5}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_lines_of_before_are_still_read(number: str) -> None:
    line = encode(Record("metric", 1.0, "loss", 0.5)).replace("0.5", number)
    assert repr(decode(line).value) == repr(float(number))


@given(records.records(), st.data())
def test_an_incomplete_line_is_not_a_record(record: Record, data: st.DataObject) -> None:
    line = encode(record).rstrip()
    with pytest.raises(ValueError, match=r".+"):
        decode(line[: data.draw(st.integers(0, len(line) - 1))])


@pytest.mark.parametrize(
    "part",
    [
        f'"value":{"9" * 400}',
        f'"t":{"9" * 400}',
        '"values":[null],"nonfinite":5',
        f'"payload":{"[" * 100_000}',
        '"value":[1]',
        '"kind":["metric"]',
        *(f'"{field}":{wrong}' for field in ("rank", "attempt") for wrong in ("null", '"x"', "[1]", "true", "1.5")),
        *(f'"{field}":{wrong}' for field in ("name", "unit") for wrong in ("[1]", "5")),
        *(f'"{field}":{wrong}' for field in ("labels", "payload") for wrong in ("[1]", "5", '"x"')),
        *(f'"step":{wrong}' for wrong in ('"1"', "[1]", "1.5", "true")),
        *(f'"t":{wrong}' for wrong in ("Infinity", "NaN", "null", "[]")),
    ],
    ids=lambda part: part[:20],
)
def test_a_hostile_line_is_not_a_record(part: str) -> None:
    line = encode(Record("metric", 1.0, "loss", None)).rstrip()
    with pytest.raises(ValueError, match=r"not a record|nested too deeply"):
        decode(f"{line[:-1]},{part}}}")


@pytest.mark.parametrize(
    "line", ["[]", "1", "null", "{}", '{"v":2,"kind":"metric","t":1,"name":"a","rank":0,"attempt":0}']
)
def test_a_line_of_another_schema_is_not_a_record(line: str) -> None:
    with pytest.raises(ValueError, match="not a record of schema 1"):
        decode(line)


def test_keys_of_later_versions_are_ignored() -> None:
    known = Record("metric", 1.0, "loss", 0.5)
    assert decode(encode(known).replace('"v":1', '"v":1,"future":{"a":1}')) == known
