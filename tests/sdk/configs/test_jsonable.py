"""Anything becomes JSON that a person can read, and no secret does."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import enum
import functools
import json
import math
from collections import OrderedDict, UserDict, defaultdict
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.configs.jsonable import MAX_DEPTH, MAX_VALUES, jsonable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=50)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "lr", "token_count"]), inner),
    max_leaves=10,
)  # fmt: skip


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Optimizer:
    name: str
    rates: tuple[float, ...] = (0.1, 0.2)


class Point(NamedTuple):
    x: int
    y: int


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError("no")


class Client:
    def __repr__(self) -> str:
        return "Client(url='db', password='hush')"


class HubConfig:
    def to_dict(self) -> dict[str, Any]:
        return {"layers": 2, "hf_token": "x"}


@given(JSON)
def test_json_values_stay_unchanged(value: Any) -> None:
    assert jsonable(value) == value


ODD = st.recursive(
    st.sampled_from([object(), Colour.RED, Point(1, 2), b"x", {1, "a"}, Hostile, print, math.nan, math.inf,
                     np.float32(1.5), np.int64(3), np.zeros((2, 2)), np.zeros(10_000), 10**400, "\ud800", 1j, range(3)])
    | st.text() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers() | st.just(Colour.RED), inner)
    | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@given(ODD)
def test_anything_becomes_json(value: Any) -> None:
    assert json.loads(json.dumps(jsonable(value), allow_nan=False)) == jsonable(value)


READABLE: list[tuple[Any, Any]] = [
    (Colour.RED, "red"),
    ({Colour.RED: 1, 2: 3}, {"red": 1, "2": 3}),
    (Optimizer("adam"), {"name": "adam", "rates": [0.1, 0.2]}),
    (Point(1, 2), {"x": 1, "y": 2}),
    (HubConfig(), {"layers": 2, "hf_token": "<secret>"}),
    (argparse.Namespace(lr=0.1), {"lr": 0.1}),
    (SimpleNamespace(lr=0.1), {"lr": 0.1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (UserDict({"a": 1}), {"a": 1}),
    (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (defaultdict(int, a=1), {"a": 1}),
    ({"b", "a"}, ["a", "b"]),
    (range(3), [0, 1, 2]),
    (PurePosixPath("/data"), "/data"),
    (dt.date(2026, 11, 21), "2026-11-21"),
    (dt.datetime(2026, 11, 21, tzinfo=dt.timezone.utc), "2026-11-21T00:00:00+00:00"),
    (b"abc", "<3 bytes>"),
    (np.float32(1.5), 1.5),
    (np.arange(3), [0, 1, 2]),
    (np.zeros((100, 8), np.float32), "float32[100, 8]"),
    (np.dtype("int8"), "dtype('int8')"),
    (int, "builtins.int"),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
    (2**60, str(2**60)),
    (Hostile(), "<Hostile that cannot be shown>"),
    (object(), "<object object>"),
]


@pytest.mark.parametrize(("value", "shown"), READABLE, ids=lambda value: type(value).__name__)
def test_other_values_become_readable(value: Any, shown: Any) -> None:
    assert jsonable(value) == shown


def test_functions_are_their_names() -> None:
    assert jsonable(json.dumps) == "json.dumps"
    assert "partial" in str(jsonable(functools.partial(json.dumps, indent=1)))


SHOWN: list[tuple[Any, Any]] = [
    ({"deep": [{"dbPassword": "hush", "max_tokens": 5}]}, {"deep": [{"dbPassword": "<secret>", "max_tokens": 5}]}),
    ({"database": "postgres://me:hush@db/runs"}, {"database": "postgres://me:<secret>@db/runs"}),
    ([{"name": "HF_TOKEN", "value": "hush"}], [{"name": "HF_TOKEN", "value": "<secret>"}]),
    ([{"name": "LR", "value": "0.1"}], [{"name": "LR", "value": "0.1"}]),
    (["train.py", "--api-key", "hush", "--lr", "0.1"], ["train.py", "--api-key", "<secret>", "--lr", "0.1"]),
    (["train.py", "--api-key=hush"], ["train.py", "--api-key=<secret>"]),
    (Client(), "Client(url='db', password='<secret>')"),
]


@pytest.mark.parametrize(("value", "shown"), SHOWN)
def test_secrets_are_replaced_wherever_they_stand(value: Any, shown: Any) -> None:
    assert jsonable(value) == shown


def test_recursive_values_terminate() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = [loop]
    assert jsonable(loop) == {"a": 1, "self": ["<contains itself>"]}


def test_one_value_in_two_places_is_shown_twice() -> None:
    shared = {"lr": 0.1}
    assert jsonable([shared, shared]) == [shared, shared]


def test_endless_values_are_cut() -> None:
    deep: list[Any] = []
    for _ in range(1000):
        deep = [deep]
    assert len(json.dumps(jsonable(deep))) < 3 * MAX_DEPTH + 10
    assert len(json.dumps(jsonable({str(n): [n] * 100 for n in range(10_000)}))) < 20 * MAX_VALUES
    assert len(json.dumps(jsonable("x" * 10**6))) < 10_000
