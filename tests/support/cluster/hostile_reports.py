"""A grammar of hostile reports: valid ones with parts that are long, many, nested, odd or broken."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.reports.models import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Part = tuple[str, bytes]
FEW, MANY = 8, 100_000


def hostile_body(dice: Random, sequence: int) -> tuple[bytes, str]:
    """Return a body and its encoding; each fiftieth is `amplifying_body`."""
    if sequence % 50 == 0:
        return amplifying_body(dice, sequence)
    head = {"v": 1, "incarnation": f"{dice.randrange(64):08x}", "sequence": sequence, "sent": 1.0, "rank": 0}
    fields = {name: json.dumps(value).encode() for name, value in head.items()}
    fields["run"] = b'{"name":"r"}'
    for _ in range(dice.randint(0, 3)):
        name, value = dice.choice(PARTS)(dice)
        fields[name] = value
    text = b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), value) for name, value in fields.items())
    text = dice.choice(BREAKS)(dice, text)
    return (gzip.compress(text, 1), "gzip") if dice.random() < 0.8 else (text[: 2**20], "")


def amplifying_body(dice: Random, sequence: int) -> tuple[bytes, str]:
    """Return a valid body of 350 bytes whose events, one by one, are 370 MB of journal."""
    head = {"v": 1, "incarnation": f"{dice.randrange(64):08x}", "sequence": sequence, "sent": 1.0, "rank": 0}
    items = [[1_790_000_000_000_000, 2, 0, 0, "\x01" * 600], *[1] * MANY]
    text = json.dumps(head | {"run": {"name": "r"}, "events": {"items": items}}, separators=(",", ":"))
    return gzip.compress(text.encode(), 1), "gzip"


def count_of(dice: Random) -> int:
    """Return a number of items: usually a few, sometimes as many as a body has room for."""
    return dice.choice([0, 0, 1, 1, *[FEW] * 10, 500, 500, 500, 5000, 5000, MANY])


def text_of(dice: Random) -> bytes:
    """Return a JSON text."""
    unit = dice.choice(["a", "\x01", "\u00e9", "\\", '"', "\U0001f600", "<", "\u2028"])
    text = json.dumps(unit * dice.choice([0, 1, 200, 600, 601, 5000]), ensure_ascii=dice.random() < 0.5)
    return dice.choice([text.encode(), text.encode(), b'"\\ud800"', b'"\xff"'])


def number_of(dice: Random) -> bytes:
    """Return a JSON number."""
    return dice.choice([b"0", b"1", b"-1", b"999", b"1.5", b"1e308", b"1e999", b"9" * 17, b"9" * 400, b"true"])


def value_of(dice: Random, depth: int = 3) -> bytes:
    """Return any JSON value."""
    if depth == 0 or dice.random() < 0.4:
        return dice.choice([text_of(dice), number_of(dice), b"null", b"{}", b"[]"])
    if dice.random() < 0.1:
        return b"[" * dice.choice([20, 2000, 100_000])
    items = [value_of(dice, depth - 1) for _ in range(dice.randint(0, 4))]
    if dice.random() < 0.5:
        return b"[%b]" % b",".join(items * (dice.choice([1, 2000]) if depth == 1 else 1))
    return b"{%b}" % b",".join(b'"%d":%b' % (number, item) for number, item in enumerate(items))


def many(dice: Random, item: Callable[[int], bytes], brackets: bytes) -> bytes:
    """Return an array or object of many items, as long as a body may be."""
    items, size = list[bytes](), 0
    for number in range(count_of(dice)):
        items.append(item(number))
        size += len(items[-1]) + 1
        if size > MAX_BODY_BYTES * 1.1:
            break
    return brackets[:1] + b",".join(items) + brackets[1:]


def events(dice: Random) -> Part:
    """Return packed events, valid at the start and of one shape after it."""
    text = text_of(dice)
    first = b"[1790000000000000,%d,0,0,%b]" % (dice.choice([0, 2, 22, 27]), text)
    value = value_of(dice, 2)
    shapes: list[Callable[[int], bytes]] = [
        lambda _: b"0",
        lambda number: b"%d" % (number % 10**9),
        lambda _: b"[1,22,%b]" % text,
        lambda number: b"[1790000000000000,2,%d,%d,%b]" % (number, number % 7, text),
        lambda _: b'{"clock":1}',
        lambda number: b'{"clock":%d}' % (number + 1),
        lambda number: b"[1,2,%d]" % (MANY - number),
        lambda number: b'[1,22,"c%d"]' % number,
        lambda number: b'[-1,22,"c%d"]' % number,
        lambda number: b'[1790000000000000,2,0,0,"r%d"]' % number,
        lambda number: b'[1790000000000000,22,"c",%d,""]' % (MANY - number),
        lambda _: b"[]",
        lambda _: value,
    ]
    shape = dice.choice(shapes)
    items = many(dice, lambda number: shape(number) if number else first, b"[]")
    start = dice.choice([b"0", b"0", b"1", b"100", b"-1", b"9007199254740993", b'"x"'])
    return "events", b'{"first":%b,"items":%b}' % (start, items)


def configs(dice: Random) -> Part:
    """Return configurations."""
    value = value_of(dice)
    entries = many(dice, lambda number: b'"%d":%b' % (number, value), b"{}")
    return "configs", b'{"%b":%b}' % (dice.choice([b"user", b"hardware", b"software", b"other"]), entries)


def sessions(dice: Random) -> Part:
    """Return profiles."""
    texts = text_of(dice), text_of(dice)
    return "sessions", many(dice, lambda number: b'{"id":"%d","directory":%b,"state":%b}' % (number, *texts), b"[]")


def metrics(dice: Random) -> Part:
    """Return metrics."""
    value = number_of(dice)
    return "metrics", many(dice, lambda number: b'"m%d":%b' % (number, value), b"{}")


def run(dice: Random) -> Part:
    """Return facts about the run, with kinds as earlier versions sent them."""
    kinds = many(dice, lambda number: b'"%d":%b' % (number, b"{}"), b"{}")
    return "run", b'{"name":%b,"group":%b,"storage":%b,"kinds":%b}' % (*(text_of(dice) for _ in range(3)), kinds)


def other(dice: Random) -> Part:
    """Return any field with any value."""
    names = [
        "host",
        "profiler",
        "progress",
        "message",
        "reason",
        "phase",
        "unknown",
        "worldSize",
        "attempt",
        "sequence",
    ]
    return dice.choice(names), value_of(dice)


def _whole(_: Random, text: bytes) -> bytes:
    return text


PARTS: list[Callable[[Random], Part]] = [events, events, configs, sessions, metrics, run, other]
BREAKS: list[Callable[[Any, bytes], bytes]] = [
    *[_whole] * 8,
    lambda dice, text: text[: dice.randint(0, len(text))],
    lambda _, text: text + b" " * 2**21,
    lambda _, text: b"\xef\xbb\xbf" + text,
    lambda dice, text: text.replace(b",", dice.choice([b" ,\n", b",,", b"\x00"]), 50),
]
