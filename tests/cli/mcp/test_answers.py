from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.mcp.answers import answer_of

LIMIT = 512

texts = st.text(max_size=400)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(texts, inner, max_size=40),
    max_leaves=60,
)


@given(documents)
def test_an_answer_is_never_larger_than_its_limit(document: Any) -> None:
    answer = answer_of(document, limit=LIMIT)
    assert len(json.dumps(answer)) <= LIMIT


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=5)))
def test_a_result_that_fits_is_whole(document: dict[str, list[int]]) -> None:
    assert answer_of(document) == {"result": document}


def test_a_cut_says_how_much_is_missing() -> None:
    answer = answer_of([{"name": f"run-{number}"} for number in range(5000)])
    kept, last = answer["result"][:-1], answer["result"][-1]
    assert kept[0] == {"name": "run-0"}
    assert last == f"… {5000 - len(kept)} more"


def test_characters_that_control_a_terminal_are_escaped() -> None:
    assert answer_of({"na\x1b[2Jme": "a\nb\x07"}) == {"result": {"na\\x1b[2Jme": "a\nb\\x07"}}
