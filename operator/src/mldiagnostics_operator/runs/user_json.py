"""JSON of files that users can write; pure."""

from __future__ import annotations

from typing import Final

import orjson

MAX_BYTES: Final = 4 << 20
"""Largest file that is parsed; `run.json` and `cluster.json` have this limit, a capture of 2000 targets takes 1 MiB."""
_MAX_CONTAINERS: Final = 1 << 16
"""Arrays and objects of a document; an empty one takes 3 bytes of the file and 64 of memory."""


def parse_user_json(content: bytes) -> object:
    """Parse a document on the event loop in bounded time.

    A thread would not help: the parser holds the lock of the interpreter.

    Raises:
        ValueError: It is not JSON, or has too many arrays and objects.
    """
    if content.count(b"[") + content.count(b"{") > _MAX_CONTAINERS:
        raise ValueError(f"has more than {_MAX_CONTAINERS} arrays and objects")
    document: object = orjson.loads(content)
    return document
