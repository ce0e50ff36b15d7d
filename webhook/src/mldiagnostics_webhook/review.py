"""AdmissionReview (admission.k8s.io/v1): read from any bytes, and answered with nothing but permission."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_PODS: Final = {"group": "", "version": "v1", "resource": "pods"}
_MAX_UID: Final = 128


@dataclass(frozen=True, slots=True)
class Review:
    """The creation of what is said to be a pod."""

    uid: str
    namespace: str
    pod: object


@dataclass(frozen=True, slots=True)
class OtherReview:
    """A review of something else than the creation of a pod."""

    uid: str
    about: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What is no review; `uid` is empty if not even that is known, and there is nobody to answer to."""

    uid: str
    why: str


def read(body: bytes) -> Review | OtherReview | Unreadable:
    """Read a request's body. Of keys that are there twice the last one counts, as for the API server."""
    try:
        whole = orjson.loads(body)
    except ValueError as fault:  # invalid UTF-8 and too deep nesting included
        return Unreadable("", f"the body is no JSON: {fault}")
    request = whole.get("request") if isinstance(whole, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(uid, str) or not 0 < len(uid) <= _MAX_UID:
        return Unreadable("", "the body has no request with a uid")
    if (whole.get("apiVersion"), whole.get("kind")) != (API_VERSION, KIND):
        return Unreadable(uid, f"the body is no {KIND} of {API_VERSION}")
    if request.get("operation") != "CREATE" or request.get("resource") != _PODS or request.get("subResource"):
        return OtherReview(uid, ascii([request.get(key) for key in ("operation", "resource", "subResource")])[:200])
    namespace = request.get("namespace")
    if not isinstance(namespace, str) or not namespace:
        return Unreadable(uid, "the request names no namespace")
    return Review(uid, namespace, request.get("object"))


def encoded(patch: Sequence[Mapping[str, Any]]) -> str:
    """Write a JSON patch as answers carry it; empty if it has no operations."""
    return base64.b64encode(orjson.dumps(patch)).decode() if patch else ""


def permission(uid: str, patch: str = "", *, warning: str = "") -> bytes:
    """Write the answer: allowed, with an encoded patch if there is one, and a warning (at most 120 characters)."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = patch
    if warning:
        response["warnings"] = [warning]
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
