from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.names import INJECT_ANNOTATION
from mldiagnostics_kube.object_store import MemoryBudget, ObjectStore, cut, key_of
from support import builders
from support.reviews import job, jobset

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


def test_of_an_object_only_what_is_read_is_kept() -> None:
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
def test_a_shelf_is_a_dictionary_with_less_room(changes: list[tuple[str, Any]], limit: int) -> None:
    small, large = MemoryBudget(limit), MemoryBudget(PLENTY)
    shelves = ObjectStore(small), ObjectStore(large)
    expected: dict[str, Any] = {}
    for what, item in changes:
        for shelf in shelves:
            if what == "list":
                shelf.keep_only({key_of(item)})
            else:
                getattr(shelf, what)(item)
        if what == "put":
            expected[key_of(item)] = cut(item)
        elif what == "remove":
            expected.pop(key_of(item), None)
        else:
            expected = {key: kept for key, kept in expected.items() if key == key_of(item)}
        assert small.taken_bytes <= limit
        for key, kept in expected.items():
            namespace, _, name = key.partition("/")
            assert shelves[0].get(namespace, name) in (None, kept)
            assert shelves[1].get(namespace, name) == kept
        assert len(shelves[1]) == len(expected)
    for shelf in shelves:
        shelf.keep_only(set())
    assert small.taken_bytes == large.taken_bytes == len(shelves[0]) == len(shelves[1]) == 0


def test_what_finds_no_room_is_counted_and_its_old_version_is_not_told() -> None:
    shelf = ObjectStore(MemoryBudget(1000))
    shelf.put(job(None, "a", labels={"v": "1"}))
    shelf.put(job(None, "a", labels={"v": "x" * 2000}))
    assert (shelf.left_out, shelf.get("ml", "a")) == (1, None)


def test_a_very_large_object_takes_no_room_from_others() -> None:
    room = MemoryBudget(PLENTY)
    shelf = ObjectStore(room)
    shelf.put(job(None, "a", labels={"v": "x" * 20_000}))
    assert (shelf.left_out, shelf.get("ml", "a"), room.taken_bytes) == (1, None, 0)


def test_as_long_as_nothing_changes_the_same_is_told() -> None:
    shelf = ObjectStore(MemoryBudget(PLENTY))
    shelf.put(job(None, "a", labels={"v": "1"}))
    told = shelf.get("ml", "a")
    assert shelf.get("ml", "a") is told
    shelf.put(job(None, "a", labels={"v": "2"}))
    assert shelf.get("ml", "a") == cut(job(None, "a", labels={"v": "2"}))
