from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.lifecycle.description import MAX_NAME, MAX_NOTES, MAX_TAG, MAX_TAGS, RunDescription, fitting_tags

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
tags = st.text(min_size=1, max_size=MAX_TAG).filter(lambda tag: tag.isprintable() and tag == tag.strip() != "")


@given(st.lists(anything | tags))
def test_tags_are_valid_and_none_is_lost_silently(given_tags: list[object]) -> None:
    kept, others = fitting_tags(given_tags)
    assert len(kept) <= MAX_TAGS
    assert all(tag and tag == tag.strip() and len(tag) <= MAX_TAG and tag.isprintable() for tag in kept)
    assert fitting_tags(kept) == (kept, [])
    for tag in given_tags:
        assert tag in others or (isinstance(tag, str) and tag.strip() in kept)


@given(st.lists(tags, min_size=MAX_TAGS + 1, max_size=MAX_TAGS + 9, unique=True))
def test_the_first_tags_are_kept(given_tags: list[str]) -> None:
    assert fitting_tags(given_tags) == (tuple(given_tags[:MAX_TAGS]), given_tags[MAX_TAGS:])


@given(
    st.builds(
        RunDescription,
        name=st.none() | st.text(min_size=1, max_size=MAX_NAME),
        tags=st.none() | st.lists(tags, unique=True, max_size=MAX_TAGS).map(tuple),
        notes=st.none() | st.text(max_size=MAX_NOTES),
    )
)
def test_a_description_is_read_as_written(description: RunDescription) -> None:
    assert RunDescription.of(description.to_json()) == description


@given(st.dictionaries(st.sampled_from(["name", "tags", "notes", "edited"]), anything))
def test_a_hostile_description_is_read_within_its_limits(fields: dict[str, object]) -> None:
    read = RunDescription.of(fields)
    assert len(read.name or "") <= MAX_NAME
    assert len(read.notes or "") <= MAX_NOTES
    assert len(read.tags or ()) <= MAX_TAGS
