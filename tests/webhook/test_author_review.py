"""Reviews of schedules: the user who changes the spec is the author, and nothing is denied."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.names import AUTHOR_ANNOTATION
from mldiagnostics_webhook.author_review import answer_author
from support.cluster.reviews import encoded, review_of

Object = dict[str, Any]
SPEC = {"schedule": {"every": "6h"}}
ANA, BEN = ({"username": name, "groups": ["research", "system:authenticated"]} for name in ("ana", "ben"))
BY_ANA, BY_BEN = (f"{name}\nresearch\nsystem:authenticated" for name in ("ana", "ben"))


def schedule(spec: Object = SPEC, **annotations: str) -> Object:
    metadata: Object = {"name": "nightly"}
    return {"metadata": metadata | ({"annotations": annotations} if annotations else {}), "spec": spec}


def by(author: str) -> Object:
    return {AUTHOR_ANNOTATION: author}


def reviewed(new: Object, old: Object | None, user: Any) -> Object:
    """Return the schedule as the API server stores it."""
    review = review_of(new, oldObject=old, operation="UPDATE" if old else "CREATE", userInfo=user)
    answer = answer_author(encoded(review))
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert response["allowed"] is True
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    stored: Object = jsonpatch.apply_patch(new, patch)
    return stored


@pytest.mark.parametrize("annotations", [{}, {"a": "b"}, {AUTHOR_ANNOTATION: BY_BEN}])
def test_the_user_who_creates_a_schedule_is_its_author(annotations: Object) -> None:
    stored = reviewed(schedule(**annotations), None, ANA)
    assert stored["metadata"]["annotations"] == annotations | by(BY_ANA)


def test_the_user_who_changes_the_spec_is_the_author_then() -> None:
    new = schedule({"schedule": {"every": "1h"}}, **by(BY_ANA))
    assert reviewed(new, schedule(**by(BY_ANA)), BEN)["metadata"]["annotations"] == by(BY_BEN)


@pytest.mark.parametrize("changed", [{}, {"a": "b"}, {AUTHOR_ANNOTATION: BY_BEN}, {AUTHOR_ANNOTATION: "root"}])
def test_no_other_change_changes_the_author(changed: Object) -> None:
    stored = reviewed(schedule(**changed), schedule(**by(BY_ANA)), BEN)
    assert stored["metadata"]["annotations"] == changed | by(BY_ANA)


def test_a_schedule_without_an_author_gets_none_by_other_changes() -> None:
    assert "annotations" not in reviewed(schedule(), schedule(), BEN)["metadata"]
    assert AUTHOR_ANNOTATION not in reviewed(schedule(**by(BY_BEN)), schedule(), BEN)["metadata"]["annotations"]


def test_a_user_who_cannot_be_noted_is_no_author() -> None:
    assert "annotations" not in reviewed(schedule(), None, {})["metadata"]


@pytest.mark.parametrize("new", [None, {}, [], {"metadata": None}, {"metadata": {"annotations": []}, "spec": SPEC}])
def test_a_schedule_of_another_shape_is_allowed_unchanged_or_with_its_author(new: Any) -> None:
    answer = answer_author(encoded(review_of(new, oldObject=None, userInfo=ANA)))
    assert json.loads(answer.body)["response"]["allowed"] is True


@given(st.binary(max_size=200))
def test_a_body_that_is_not_a_review_is_an_error_of_the_client(body: bytes) -> None:
    assert answer_author(body).status == 400
