from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.reports import MAX_DEPTH
from mldiagnostics_operator.control_plane.bodies import Encoded, InvalidBody, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(values)
def test_gzip_and_plain_bodies_are_the_same_json(value: Any) -> None:
    text = json.dumps(value).encode()
    assert parse(Encoded(text)) == parse(Encoded(gzip.compress(text), " GZip ")) == value


@given(st.binary(max_size=100), st.sampled_from(["", "gzip", "br", "gzip, gzip"]))
def test_any_bytes_are_read_or_rejected(content: bytes, encoding: str) -> None:
    try:
        parse(Encoded(content, encoding))
    except InvalidBody as error:
        assert error.status in {400, 413, 415}  # noqa: PT017 - also passes without an error


@given(st.integers(1, 40), st.booleans())
def test_depth_is_bounded(depth: int, objects: bool) -> None:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if objects else [value]
    text = json.dumps([1, value]).encode() if depth < MAX_DEPTH else json.dumps(value).encode()
    if depth <= MAX_DEPTH:
        parse(Encoded(text))
    else:
        with pytest.raises(InvalidBody, match="nested deeper"):
            parse(Encoded(text))
