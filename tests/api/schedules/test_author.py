from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.author import LONGEST, Author

LINES = st.text(min_size=1, max_size=40).filter(lambda text: "\n" not in text)


@given(LINES, st.lists(LINES, max_size=5))
def test_an_author_survives_the_annotation(name: str, groups: list[str]) -> None:
    author = Author.of_request({"username": name, "groups": groups})
    assert author == Author(name, tuple(groups))
    assert author is not None
    assert Author.parse(author.text) == author


@pytest.mark.parametrize("user", [None, {}, [], "ana", {"username": ""}, {"username": 3}])
def test_a_request_without_a_user_has_no_author(user: object) -> None:
    assert Author.of_request(user) is None


def test_an_author_with_more_groups_than_an_annotation_has_room_for_is_not_noted() -> None:
    assert Author.of_request({"username": "ana", "groups": ["g" * LONGEST]}) is None


def test_the_question_is_about_captures_in_the_namespace() -> None:
    spec = Author("ana", ("research",)).access_review("ml")["spec"]
    assert (spec["user"], spec["groups"]) == ("ana", ["research"])
    assert spec["resourceAttributes"] == {
        "namespace": "ml",
        "verb": "create",
        "group": "diagon.gke.io",
        "resource": "mldiagnosticsconnections",
    }
