from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_webhook.limits import MAX_VALUES
from mldiagnostics_webhook.review import OtherReview, Review, Unreadable, encoded, permission, read
from support.cluster.reviews import PODS, pod_of, review_of
from support.cluster.reviews import encoded as body_of

POD = pod_of(None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def without(key: str) -> dict[str, Any]:
    review = review_of(POD)
    del review["request"][key]
    return review


def test_a_creation_is_parsed() -> None:
    assert read(body_of(review_of(POD, uid="u-1", namespace="team"))) == Review("u-1", "team", POD)


def test_the_namespace_is_that_of_the_request() -> None:
    pod = {**POD, "metadata": {"namespace": "other"}}
    review = read(body_of(review_of(pod, namespace="team")))
    assert isinstance(review, Review)
    assert review.namespace == "team"


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE"},
        {"resource": {**PODS, "resource": "deployments"}},
        {"resource": {**PODS, "version": "v2"}},
        {"subResource": "ephemeralcontainers"},
    ],
)
def test_other_operations_and_resources_are_distinguished(changes: dict[str, Any]) -> None:
    assert isinstance(read(body_of(review_of(POD, **changes))), OtherReview)


def test_a_body_without_a_uid_is_unreadable() -> None:
    bodies = [b"", b"\xff\xfe", b"null", b"[]", b"{}", b'{"request":[]}', body_of(review_of(POD, uid="")), b"[" * 9999]
    bodies += [body_of(without("uid")), body_of(review_of(POD, uid="u" * 129)), body_of({"request": {"uid": 7}})]
    bodies += [body_of(review_of(POD)).decode().encode("utf-16"), body_of(review_of(POD))[:-1]]
    assert [read(body) for body in bodies if read(body) != Unreadable("", read(body).why)] == []


def test_a_review_with_too_many_values_is_not_parsed() -> None:
    assert isinstance(read(body_of(review_of(POD, options=[[]] * (MAX_VALUES // 2 - 1000)))), Review)
    review = read(body_of(review_of(POD, options=[[]] * (MAX_VALUES // 2))))
    assert isinstance(review, Unreadable)
    assert review.reason == "TooComplex"


def test_an_invalid_review_keeps_its_uid() -> None:
    reviews = [{**review_of(POD), "apiVersion": "admission.k8s.io/v1beta1"}, {**review_of(POD), "kind": "Review"}]
    reviews += [without("namespace"), review_of(POD, namespace=""), review_of(POD, namespace=["ml"])]
    for review in reviews:
        parsed = read(body_of(review))
        assert isinstance(parsed, Unreadable), review
        assert parsed.uid == "review-1"


def test_the_last_of_duplicate_keys_counts() -> None:
    body = body_of(review_of(POD, uid="first")).replace(b'"uid":"first"', b'"uid":"first","uid":"second"')
    assert read(body).uid == "second"


@given(JSON)
def test_any_object_is_returned_unchanged(value: Any) -> None:
    parsed = read(json.dumps(review_of(value)).encode())
    if isinstance(parsed, Review):
        assert parsed.pod == value
    else:
        assert isinstance(parsed, Unreadable)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed(body: bytes) -> None:
    assert read(body)


PATCHES = st.lists(st.fixed_dictionaries({"op": st.just("add"), "path": st.text(), "value": st.text()}), max_size=3)


@given(st.text(min_size=1), PATCHES, st.text())
def test_every_response_allows_the_request(uid: str, patch: list[dict[str, str]], warning: str) -> None:
    answer = json.loads(permission(uid, encoded(patch), warning=warning))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    assert (response["uid"], response["allowed"]) == (uid, True)
    assert ("patch" in response, response.get("patchType")) == ((True, "JSONPatch") if patch else (False, None))
    assert json.loads(base64.b64decode(response.get("patch", "W10="))) == patch
    assert response.get("warnings", []) == ([warning] if warning else [])
