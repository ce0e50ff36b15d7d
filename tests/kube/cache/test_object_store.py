from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.names import INJECT_ANNOTATION
from mldiagnostics_kube.cache.object_store import MemoryBudget, ObjectStore, cut, key_of
from support.cluster import builders
from support.cluster.reviews import job, jobset

PLENTY = 10**6
ITEMS = st.builds(
    lambda name, space, labels: builders.thing(
        name, kind="Job", api_version="batch/v1", namespace=space, labels=labels
    ),
    st.sampled_from("abc"),
    st.sampled_from(["ml", "team"]),
    st.dictionaries(st.text(min_size=1), st.text(), max_size=3),
)
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "remove", "list"]), ITEMS), max_size=30)


def test_an_object_is_cut_to_the_fields_that_are_read() -> None:
    item = job(jobset(), labels={"a": "b"}, spec={"big": 1})
    item["metadata"] |= {
        "managedFields": [{}],
        "annotations": {INJECT_ANNOTATION: "false", "last-applied": "x"},
        "ownerReferences": [builders.owned("n", "Node", "v1", controller=False), *item["metadata"]["ownerReferences"]],
    }
    (owner,) = cut(item)["metadata"].pop("ownerReferences")
    assert owner["name"] == "trainer"
    assert cut(item)["metadata"]["annotations"] == {INJECT_ANNOTATION: "false"}
    assert cut(item).keys() == {"metadata"}
    kept = {"name", "namespace", "uid", "creationTimestamp", "labels", "annotations", "ownerReferences"}
    assert cut(item)["metadata"].keys() == kept


@given(CHANGES, st.integers(0, 3000))
def test_property_a_store_is_a_dictionary_within_a_budget(changes: list[tuple[str, Any]], limit: int) -> None:
    small, large = MemoryBudget(limit), MemoryBudget(PLENTY)
    stores = ObjectStore(small), ObjectStore(large)
    expected: dict[str, Any] = {}
    for what, item in changes:
        for store in stores:
            if what == "list":
                store.keep_only({key_of(item)})
            else:
                getattr(store, what)(item)
        if what == "put":
            expected[key_of(item)] = cut(item)
        elif what == "remove":
            expected.pop(key_of(item), None)
        else:
            expected = {key: kept for key, kept in expected.items() if key == key_of(item)}
        assert small.taken_bytes <= limit
        for key, kept in expected.items():
            namespace, _, name = key.partition("/")
            assert stores[0].get(namespace, name) in (None, kept)
            assert stores[1].get(namespace, name) == kept
        assert len(stores[1]) == len(expected)
    for store in stores:
        store.keep_only(set())
    assert small.taken_bytes == large.taken_bytes == len(stores[0]) == len(stores[1]) == 0


def test_a_dropped_change_is_counted_and_the_old_version_is_removed() -> None:
    store = ObjectStore(MemoryBudget(1000))
    store.put(job(None, "a", labels={"v": "1"}))
    store.put(job(None, "a", labels={"v": "x" * 2000}))
    assert (store.left_out, store.get("ml", "a")) == (1, None)


def test_a_very_large_object_uses_no_budget() -> None:
    budget = MemoryBudget(PLENTY)
    store = ObjectStore(budget)
    store.put(job(None, "a", labels={"v": "x" * 20_000}))
    assert (store.left_out, store.get("ml", "a"), budget.taken_bytes) == (1, None, 0)


def test_a_large_object_is_not_kept_parsed() -> None:
    store = ObjectStore(MemoryBudget(PLENTY))
    store.put(job(None, "a", labels={"v": "x" * 2000}))
    assert store.get("ml", "a") == store.get("ml", "a")
    assert store.get("ml", "a") is not store.get("ml", "a")


def test_an_unchanged_object_is_the_same_value() -> None:
    store = ObjectStore(MemoryBudget(PLENTY))
    store.put(job(None, "a", labels={"v": "1"}))
    stored = store.get("ml", "a")
    assert store.get("ml", "a") is stored
    store.put(job(None, "a", labels={"v": "2"}))
    assert store.get("ml", "a") == cut(job(None, "a", labels={"v": "2"}))
