"""JSON bodies with an ETag, compressed where the client takes it."""

from __future__ import annotations

import asyncio
import gzip
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from mldiagnostics_view.documents import json_text

if TYPE_CHECKING:
    from collections.abc import Callable


_COMPRESSED_BYTES: Final = 1024
"""Smaller bodies fit into one packet as they are."""
_LEVEL: Final = 5


class Body:
    """Bytes of a response in both forms, and their ETag."""

    def __init__(self, content: bytes, content_type: str) -> None:
        self.content, self.content_type = content, content_type
        self.etag = digest_of(content)
        self.compressed = gzip.compress(content, _LEVEL, mtime=0) if len(content) > _COMPRESSED_BYTES else None


def send(request: web.Request, body: Body) -> web.Response:
    """Return a body, or 304 if the client has it."""
    known = request.if_none_match or ()
    headers = {"ETag": f'W/"{body.etag}"', "Vary": "Accept-Encoding"}
    if any(tag.value in (body.etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    content = body.content
    if body.compressed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
        content = body.compressed
        headers["Content-Encoding"] = "gzip"
    charset = None if body.content_type.startswith("image/") else "utf-8"
    return web.Response(body=content, headers=headers, content_type=body.content_type, charset=charset)


async def json_response(request: web.Request, document: Callable[[], Any]) -> web.Response:
    """Return what `document` makes, which a thread calls, as JSON."""
    return send(request, await asyncio.to_thread(json_body, document))


def json_body(document: Callable[[], Any]) -> Body:
    """Return the body of a document."""
    return json_text_body(json_text(document()))


def json_text_body(text: bytes) -> Body:
    """Return the body of a document that is JSON already."""
    return Body(text, "application/json")


def digest_of(content: bytes) -> str:
    """Return a short text that differs if the content does."""
    return blake2b(content, digest_size=12).hexdigest()
