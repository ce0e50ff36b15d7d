"""Bounds of an answer to an agent; pure."""

from __future__ import annotations

import json
from typing import Any, Final

from mldiagnostics.text.terminal import printable

MAX_ANSWER_BYTES: Final = 32 << 10
"""Size of the JSON of an answer: a part of the context of a model."""

_LONGEST_TEXT: Final = 4096
_MOST_ENTRIES: Final = 1024
_DEEPEST: Final = 16
_NEWLINES: Final = "\n"


def answer_of(result: Any, *, limit: int = MAX_ANSWER_BYTES) -> dict[str, Any]:
    """Return a result as an answer of at most `limit` bytes.

    Texts come from the programs that were run: characters that control a terminal are escaped. In a result that is
    too large, long lists, objects and texts are cut, and the answer says so.

    Args:
        result: The result as JSON.
        limit: Most bytes of the answer as JSON; at least 256.
    """
    answer = {"result": _cut(result, _LONGEST_TEXT << 8, _MOST_ENTRIES << 8, _DEEPEST << 2)}
    size = 1
    while _size(answer) > limit:
        text, entries = max(8, _LONGEST_TEXT // size), _MOST_ENTRIES // size
        cut = _cut(result, text, entries, _DEEPEST) if entries else None
        answer = {"result": cut, "truncated": "the result is larger than an answer may be; narrow the request"}
        size *= 2
    return answer


def _cut(value: Any, text: int, entries: int, depth: int) -> Any:
    """Return a value whose texts and collections are not longer than their limits."""
    if isinstance(value, str):
        return _shortened(value, text)
    if isinstance(value, list | dict) and depth <= 0:
        return f"… {len(value)} entries"
    if isinstance(value, list):
        kept = [_cut(each, text, entries, depth - 1) for each in value[:entries]]
        return [*kept, f"… {len(value) - entries} more"] if len(value) > entries else kept
    if isinstance(value, dict):
        pairs = list(value.items())
        kept_pairs = {_shortened(str(key), text): _cut(each, text, entries, depth - 1) for key, each in pairs[:entries]}
        return kept_pairs | {"…": f"{len(pairs) - entries} more"} if len(pairs) > entries else kept_pairs
    return value


def _shortened(text: str, length: int) -> str:
    shown = printable(text[: length + 1], keep=_NEWLINES)
    return shown if len(text) <= length else f"{shown[:length]}…"


def _size(answer: Any) -> int:
    return len(json.dumps(answer).encode())
