"""AdmissionReview (admission.k8s.io/v1): parse requests, write responses."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from mldiagnostics_webhook.limits import MAX_VALUES

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_PODS: Final = {"group": "", "version": "v1", "resource": "pods"}
_MAX_UID: Final = 128
_VALUES: Final = (b"{", b"[", b",")


@dataclass(frozen=True, slots=True)
class Review:
    """Creation of a pod; `pod` is the object as it was sent, not validated."""

    uid: str
    namespace: str
    pod: object


@dataclass(frozen=True, slots=True)
class OtherReview:
    """Review of another operation or resource."""

    uid: str
    about: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Invalid review; `uid` is empty if it is unknown, so that no answer is possible."""

    uid: str
    why: str
    reason: str = "UnreadableReview"
    """Label of the metric."""


def read_request(body: bytes) -> dict[str, Any] | Unreadable:
    """Parse the body of a review; return its request, which has a uid.

    The last of duplicate keys counts.
    """
    values = sum(map(body.count, _VALUES)) if len(body) > MAX_VALUES else 0
    if values > MAX_VALUES:
        return Unreadable("", f"the body has {values} values; at most {MAX_VALUES} are parsed", "TooComplex")
    try:
        whole = orjson.loads(body)
    except ValueError as error:  # invalid UTF-8 and too deep nesting included
        return Unreadable("", f"the body is not JSON: {error}")
    request = whole.get("request") if isinstance(whole, dict) else None
    uid = request.get("uid") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(uid, str) or not 0 < len(uid) <= _MAX_UID:
        return Unreadable("", "the body has no request with a uid")
    if (whole.get("apiVersion"), whole.get("kind")) != (API_VERSION, KIND):
        return Unreadable(uid, f"the body is not an {KIND} of {API_VERSION}")
    return request


def read(body: bytes) -> Review | OtherReview | Unreadable:
    """Parse a review of a pod."""
    request = read_request(body)
    if isinstance(request, Unreadable):
        return request
    uid = request["uid"]
    if request.get("operation") != "CREATE" or request.get("resource") != _PODS or request.get("subResource"):
        return OtherReview(uid, ascii([request.get(key) for key in ("operation", "resource", "subResource")])[:200])
    namespace = request.get("namespace")
    if not isinstance(namespace, str) or not namespace:
        return Unreadable(uid, "the request has no namespace")
    return Review(uid, namespace, request.get("object"))


def encoded(patch: Sequence[Mapping[str, Any]]) -> str:
    """Encode a JSON patch for a response; empty if it has no operations."""
    return base64.b64encode(orjson.dumps(patch)).decode() if patch else ""


def permission(uid: str, patch: str = "", *, warning: str = "") -> bytes:
    """Write a response that allows the request.

    Args:
        uid: The uid of the request.
        patch: A patch from `encoded`; empty for none.
        warning: Shown to the client; the API server cuts it to 256 characters.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = patch
    if warning:
        response["warnings"] = [warning]
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})
