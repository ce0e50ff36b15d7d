"""Keys: a valid key works in every store and stays below its root."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.store.model import checked_key, checked_prefix

TEXTS = st.text() | st.text("a./\\é ", max_size=8) | st.text("aé", min_size=120, max_size=300)


@given(TEXTS)
def test_a_valid_key_is_unchanged_and_stays_below_its_root(text: str) -> None:
    try:
        key = checked_key(text)
    except ConfigurationError:
        assume(False)  # noqa: FBT003
        raise
    assert key == text
    assert posixpath.normpath(posixpath.join("/root", key)) == f"/root/{key}"
    assert all(0 < len(segment.encode()) <= 255 for segment in key.split("/"))


@given(st.lists(st.text("aB9é ._-", min_size=1, max_size=20).filter(lambda s: s not in {".", ".."}), min_size=1))
def test_plain_segments_are_a_valid_key(segments: list[str]) -> None:
    assert checked_key("/".join(segments)) == "/".join(segments)


@pytest.mark.parametrize(
    "key", ["", "/a", "a//b", "a/", "..", "a/..", "./a", "a\nb", "a\rb", "a\0b", "\ud800", "é" * 128]
)
def test_keys_that_one_store_rejects_are_rejected_by_all(key: str) -> None:
    with pytest.raises(ConfigurationError, match="not a valid key"):
        checked_key(key)


def test_a_prefix_ends_in_a_slash() -> None:
    assert checked_prefix("") == ""
    assert checked_prefix("a/b") == checked_prefix("a/b/") == "a/b/"


@pytest.mark.parametrize("prefix", ["/", "//", "a//", "../", "a/../b"])
def test_a_prefix_that_leaves_the_root_is_rejected(prefix: str) -> None:
    with pytest.raises(ConfigurationError):
        checked_prefix(prefix)
