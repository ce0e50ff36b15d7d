"""Recorded values do not change later, and invalid ones have a reason."""

from __future__ import annotations

import decimal
import enum
import json
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.deferred_value import is_ready
from mldiagnostics.pipeline.values import MAX_VALUE_BYTES, Unrecordable, keep, settle
from support import records

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = st.floats(allow_nan=False, width=32)
SERIES = st.lists(NUMBERS, min_size=2, max_size=8)


class Colour(enum.IntEnum):
    """A number by another name."""

    RED = 3


def recorded(value: Any) -> Any:
    kept, _ = keep(value)
    return settle(kept)


def reason(value: Any) -> str:
    with pytest.raises(Unrecordable) as caught:
        recorded(value)
    return caught.value.reason


@pytest.mark.parametrize(
    "number",
    [
        2,
        2.0,
        decimal.Decimal(2),
        np.float64(2),
        np.float32(2),
        np.int64(2),
        np.array(2.0),
        np.array([[2]]),
        np.uint8(2),
    ],
    ids=lambda number: f"{type(number).__name__}{getattr(number, 'shape', '')}",
)
def test_every_kind_of_number_becomes_that_number(number: Any) -> None:
    value = recorded(number)
    assert (type(value), value) == (float, 2.0)


def test_truth_and_members_of_enumerations_are_numbers() -> None:
    assert [recorded(value) for value in (True, np.bool_(1), Colour.RED)] == [1.0, 1.0, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_jax_array_with_one_element_is_a_number(dtype: str, shape: tuple[int, ...]) -> None:
    assert recorded(jnp.ones(shape, dtype)) == 1.0
    assert recorded(np.asarray(jnp.ones(shape, dtype))) == 1.0


@given(SERIES)
def test_series_keep_each_number(numbers: list[float]) -> None:
    forms = [numbers, tuple(numbers), np.array(numbers), [np.float32(number) for number in numbers]]
    assert [recorded(form) for form in forms] == [tuple(numbers)] * 4


@given(SERIES)
def test_arrays_of_jax_are_series_one_by_one_and_as_a_whole(numbers: list[float]) -> None:
    array = jnp.asarray(numbers, "float32")
    assert recorded(array) == recorded(list(array)) == recorded(array.tolist())


@given(SERIES, NUMBERS)
def test_a_change_in_place_does_not_change_the_past(numbers: list[float], later: float) -> None:
    listed, array, single = list(numbers), np.array(numbers), np.array(numbers[0])
    kept = [keep(form)[0] for form in (listed, array, single, array[1:2], [single, single])]
    listed[:], array[:], single[...] = [later] * len(numbers), later, later
    first, second = numbers[:2]
    assert [settle(each) for each in kept] == [tuple(numbers), tuple(numbers), first, second, (first, first)]


@given(st.dictionaries(records.texts(), records.json_values(), max_size=4))
def test_a_dict_is_copied_to_its_depth(content: dict[str, Any]) -> None:
    inner = {"list": [content, [1]], "array": np.array([1.0, 2.0])}
    kept, _ = keep(inner, max_bytes=100_000)
    inner["list"][1].append(2)
    inner["array"][:] = 0
    assert kept == {"list": [content, [1]], "array": [1.0, 2.0]}


def test_nonfinite_numbers_become_strings() -> None:
    kept, _ = keep({1: object, "set": {1}, "path": decimal.Decimal("1.5"), "surrogate": "a\ud800"})
    assert kept == {"1": "<class 'object'>", "set": [1], "path": "1.5", "surrogate": "a?"}


def test_a_huge_whole_number_becomes_a_string() -> None:
    kept, _ = keep({"largest": 2**63 - 1, "larger": 2**63, "below": -(2**64), "huge": [10**5000]})
    assert isinstance(kept, dict)
    assert list(kept.values())[:3] == [2**63 - 1, "0x8000000000000000", "-0x10000000000000000"]
    huge = str(kept["huge"])[2:-2]
    assert huge.startswith("0x")
    assert huge.endswith("… (16610 bits)")
    assert len(huge) < 256
    assert json.loads(json.dumps(kept)) == kept


def test_a_deleted_or_donated_array_has_its_own_reason() -> None:
    deleted, donated = jnp.ones(()), jnp.ones((4,))
    kept = [keep(each)[0] for each in (deleted, donated, [deleted])]
    deleted.delete()
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated).block_until_ready()
    for each in kept:
        with pytest.raises(Unrecordable) as caught:
            settle(each)
        assert caught.value.reason == "deleted-array"


def test_a_traced_value_has_its_own_reason_and_is_not_held() -> None:
    with jax.checking_leaks():
        reasons: list[str] = []

        def step(x: Any) -> Any:
            reasons.append(reason(x))
            return x + 1

        jax.jit(step)(1.0)
    assert reasons == ["traced-value"]


@pytest.mark.parametrize(
    "value",
    [
        [],
        pytest.param(object(), id="object"),
        1j,
        np.ones((2, 2)),
        np.array([]),
        np.array(["1"]),
        np.array([1j, 2j]),
        np.array(["2026-11-21"], "datetime64[s]"),
        [1, "a"],
        [[1], [2]],
        [None],
    ],
    ids=repr,
)
def test_an_invalid_value_is_rejected(value: Any) -> None:
    assert reason(value) == "bad-value"


def test_arrays_with_other_shapes_are_rejected() -> None:
    arrays = [jnp.ones((2, 2)), jnp.ones(0), jax.random.key(0), {"a": jnp.ones(())}]
    assert [reason(array) for array in arrays] == ["bad-value"] * 4


@pytest.mark.parametrize(
    "value",
    [
        "x" * (MAX_VALUE_BYTES + 1),
        [1.0] * (MAX_VALUE_BYTES // 8 + 1),
        np.ones(MAX_VALUE_BYTES // 8 + 1),
        {"a": ["x" * 1000] * 5},
        {str(i): i for i in range(1000)},
    ],
    ids=["text", "list", "numpy", "nested", "dict"],
)
def test_a_large_value_is_rejected(value: Any) -> None:
    assert reason(value) == "too-large"


def test_a_large_jax_array_is_rejected_without_reading_it() -> None:
    with pytest.raises(Unrecordable) as caught:
        keep(jnp.ones(MAX_VALUE_BYTES // 8 + 1))
    assert caught.value.reason == "too-large"


def test_a_dict_that_contains_itself_is_too_large() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert reason(loop) == "too-large"


def test_the_size_of_a_kept_value_is_returned() -> None:
    sizes = [keep(value)[1] for value in (1.0, "abcd", [1, 2], np.ones(3), {"ab": "cdef"})]
    assert sizes == [0, 4, 16, 24, 2 + 8 + 4]


def test_deleted_and_donated_arrays_are_ready() -> None:
    deleted, donated, computed = jnp.ones(()), jnp.ones((4,)), jnp.ones(()).block_until_ready()
    kept = [keep(each)[0] for each in (deleted, donated, computed, [deleted, 1.0], 1.0)]
    deleted.delete()  # whose is_ready() ends the process
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated).block_until_ready()
    assert [is_ready(each) for each in kept] == [True] * 5


class Device(NamedTuple):
    """A device of torch."""

    type: str


class Tensor:
    """A CUDA tensor as torch has it, whose copy is read on the current stream."""

    device = Device("cuda")

    def __init__(self, torch: Torch) -> None:
        self.torch = torch

    def numel(self) -> int:
        return 1

    def detach(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.torch)

    def tolist(self) -> float:
        self.torch.streams_of_reads.append(self.torch.stream)
        return 2.0


class Torch:
    """The parts of torch that are used for CUDA tensors; an event is done when `is_copied`."""

    Tensor = Tensor

    def __init__(self) -> None:
        self.stream = "default"
        self.streams_of_reads: list[str] = []
        self.is_copied = False
        event = SimpleNamespace(record=lambda: None, query=lambda: self.is_copied, synchronize=lambda: None)
        self.cuda = SimpleNamespace(Event=lambda: event, Stream=lambda _: "other", stream=self._on)

    @contextmanager
    def _on(self, stream: str) -> Iterator[None]:
        before, self.stream = self.stream, stream
        yield
        self.stream = before


def test_a_cuda_tensor_is_ready_once_copied_and_read_beside_later_work(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    kept = [keep(Tensor(torch))[0], keep([Tensor(torch), 1.0])[0]]
    assert [is_ready(each) for each in kept] == [False, False]
    torch.is_copied = True
    assert [is_ready(each) for each in kept] == [True, True]
    assert [settle(each) for each in kept] == [2.0, (2.0, 1.0)]
    assert torch.streams_of_reads == ["other", "other"]
