"""Answers to reviews of schedules: the author of the spec, and always permission."""

import logging
from typing import Any, Final

from mldiagnostics_api.names import AUTHOR_ANNOTATION
from mldiagnostics_api.schedules.author import Author

from mldiagnostics_webhook.review import Unreadable, encoded, permission, read_request
from mldiagnostics_webhook.review_handler import ReviewResponse

_log: Final = logging.getLogger(__name__)

_PATH: Final = f"/metadata/annotations/{AUTHOR_ANNOTATION.replace('/', '~1')}"


def answer_author(body: bytes) -> ReviewResponse:
    """Answer a review of a schedule.

    The user who changes the spec is its author. Other changes keep the author, also those of the annotation itself.
    """
    request = read_request(body)
    if isinstance(request, Unreadable):
        _log.warning("Unreadable review of a schedule: %(problem)s", {"problem": request.why})
        return (
            ReviewResponse(200, permission(request.uid)) if request.uid else ReviewResponse(400, request.why.encode())
        )
    try:
        operations = _patch(request)
    except (AttributeError, KeyError, TypeError) as error:
        _log.warning("Review of a schedule without its parts: %(problem)s", {"problem": repr(error)})
        operations = []
    return ReviewResponse(200, permission(request["uid"], encoded(operations)))


def _patch(request: dict[str, Any]) -> list[dict[str, Any]]:
    schedule, before = request["object"], request.get("oldObject") or {}
    annotations = schedule["metadata"].get("annotations")
    author = _author(schedule, before, request.get("userInfo"))
    if author == (annotations or {}).get(AUTHOR_ANNOTATION):
        return []
    if author is None:
        return [{"op": "remove", "path": _PATH}]
    if annotations is None:
        return [{"op": "add", "path": "/metadata/annotations", "value": {AUTHOR_ANNOTATION: author}}]
    return [{"op": "add", "path": _PATH, "value": author}]


def _author(schedule: dict[str, Any], before: dict[str, Any], user: object) -> str | None:
    if before and before["spec"] == schedule["spec"]:
        known: str | None = (before["metadata"].get("annotations") or {}).get(AUTHOR_ANNOTATION)
        return known
    author = Author.of_request(user)
    return None if author is None else author.text
