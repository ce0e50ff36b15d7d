"""Answers of status 400 or above: JSON with the problem and the action to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics_api.reports.models import MAX_COMPRESSED_BYTES, Problem

from mldiagnostics_operator.control_plane.limits import READ_S, RETRY_AFTER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

_REJECTIONS: Final[Mapping[str, str]] = {
    "TooLarge": f"body: has more than {MAX_COMPRESSED_BYTES} bytes; send fewer events at a time",
    "ReadTimedOut": f"body: did not arrive within {READ_S:g} s; send it again",
    "Busy": "body: too many large bodies arrive now; try again later",
}


def problem(status: int, message: str, *, retry_after_s: float = 0.0) -> web.Response:
    """Return an answer with a message, and `Retry-After` if it may be repeated."""
    headers = {"Retry-After": str(max(1, round(retry_after_s)))} if retry_after_s else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    text = Problem(error=message).model_dump_json()
    return web.Response(status=status, text=text, content_type="application/json", headers=headers)


def rejection(status: int, reason: str) -> web.Response:
    """Return the answer to a request that exceeds a bound of the server."""
    return problem(status, _REJECTIONS.get(reason, reason), retry_after_s=RETRY_AFTER_S if status == 429 else 0.0)
