"""A dictionary that reports every change."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run import ConfigDict

KEYS = st.sampled_from("abc")
TREES = st.recursive(st.integers(), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, TREES),
        st.tuples(st.just("update"), KEYS, TREES),
        st.tuples(st.just("attribute"), KEYS, TREES),
        st.tuples(st.just("or"), KEYS, TREES),
        st.tuples(st.just("setdefault"), KEYS, TREES),
        st.tuples(st.just("pop"), KEYS, TREES),
        st.tuples(st.just("clear"), KEYS, TREES),
    ),
    max_size=8,
)


def change(target: dict[str, Any], how: str, key: str, value: Any) -> None:
    match how:
        case "set":
            target[key] = value
        case "update":
            target.update({key: value})
        case "attribute":
            setattr(target, key, value) if isinstance(target, ConfigDict) else target.__setitem__(key, value)
        case "or":
            target |= {key: value}
        case "setdefault":
            target.setdefault(key, value)
        case "pop":
            target.pop(key, None)
        case "clear":
            target.clear()


@given(st.dictionaries(KEYS, TREES), CHANGES)
def test_a_configuration_is_a_dictionary_and_no_change_is_missed(
    values: dict[str, Any], changes: list[tuple[str, str, Any]]
) -> None:
    changes: list[Any] = []
    configs = ConfigDict(values, on_change=lambda: changes.append(copy.deepcopy(dict(configs))))
    model = copy.deepcopy(values)
    for how, key, value in changes:
        before = copy.deepcopy(model)
        change(configs, how, key, value)
        change(model, how, key, copy.deepcopy(value))
        assert configs == model
        if model != before:
            assert changes[-1] == model


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, st.dictionaries(KEYS, st.integers())), min_size=1))
def test_nested_changes_are_reported(values: dict[str, Any]) -> None:
    changes: list[None] = []
    configs = ConfigDict(values, on_change=lambda: changes.append(None))
    for count, inner in enumerate(configs.values(), start=1):
        inner["new"] = count
        assert len(changes) == count


def test_keys_are_attributes() -> None:
    configs = ConfigDict({"optimizer": {"name": "adam"}})
    configs.optimizer.lr = 0.1
    assert configs == {"optimizer": {"name": "adam", "lr": 0.1}}
    del configs.optimizer.name
    assert not hasattr(configs.optimizer, "name")
    with pytest.raises(AttributeError, match="no 'momentum'; its keys are lr"):
        _ = configs.optimizer.momentum
    with pytest.raises(AttributeError):
        del configs.optimizer.momentum
    with pytest.raises(KeyError):
        configs.pop("momentum")


def test_one_update_is_one_change() -> None:
    changes: list[None] = []
    configs = ConfigDict(on_change=lambda: changes.append(None))
    configs.update({"a": 1, "b": 2}, c=3)
    configs.update([("d", 4)])
    assert (configs, len(changes)) == ({"a": 1, "b": 2, "c": 3, "d": 4}, 2)


@pytest.mark.parametrize("nonsense", [5, None, "text", [1, 2]])
def test_an_invalid_update_changes_nothing(nonsense: Any) -> None:
    configs = ConfigDict({"a": 1})
    configs.update(nonsense)
    assert configs == {"a": 1}


def test_a_dictionary_that_contains_itself_is_taken() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = loop
    configs = ConfigDict({"loop": loop})
    configs.update(loop)
    assert configs.loop.a == 1


def test_a_recursive_dictionary_is_accepted() -> None:
    nested: dict[str, Any] = {}
    for _ in range(10_000):
        nested = {"a": nested}
    configs = ConfigDict({"nested": nested})
    configs.update(nested)
    assert set(configs) == {"nested", "a"}


def test_copies_are_equal_and_of_their_own() -> None:
    changes: list[None] = []
    configs = ConfigDict({"a": {"b": 1}}, on_change=lambda: changes.append(None))
    for copied in (copy.deepcopy(configs), copy.copy(configs), pickle.loads(pickle.dumps(configs))):  # noqa: S301
        assert copied == configs
        copied["c"] = 1
        assert "c" not in configs
    assert changes == []
