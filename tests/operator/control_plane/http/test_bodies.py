from __future__ import annotations

import gzip
import json
import tracemalloc
from contextlib import suppress
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.packing import pack, unpack
from mldiagnostics_api.reports.models import MAX_BODY_BYTES, MAX_DEPTH, InvalidReport
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.http.bodies import (
    Encoded,
    InvalidBody,
    expanded,
    expanded_inline,
    parse,
    simple_json,
)
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.memory.packed_events import SLICE, repacked
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.control_plane.slices import finished
from support.cluster.reports import apply, persist
from support.goodput.packed_entries import packed_entries

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
KEY = RunKey("ml", "a" * 64)
SENDER = Sender("ml", "default", "pod", "uid")
HEAD = b'{"v":1,"incarnation":"00000001","sequence":1,"sent":1.0,"run":{"name":"r"}'


@given(values)
def test_gzip_and_plain_bodies_are_the_same_json(value: Any) -> None:
    text = json.dumps(value).encode()
    assert simple_json(Encoded(text)) == simple_json(Encoded(gzip.compress(text), " GZip ")) == value


@given(st.binary(max_size=100), st.sampled_from(["", "gzip", "br", "gzip, gzip"]))
def test_any_bytes_are_read_or_rejected(content: bytes, encoding: str) -> None:
    try:
        parse(finished(expanded(Encoded(content, encoding))))
    except InvalidBody as error:
        assert error.status in {400, 413, 415}  # noqa: PT017 - also passes without an error
    except InvalidReport as error:
        assert str(error).startswith("report: ")  # noqa: PT017 - as above


@given(st.integers(0, 3 * MAX_BODY_BYTES // 2), st.binary(max_size=8))
def test_a_body_expands_in_pieces_up_to_its_bound(size: int, pattern: bytes) -> None:
    text = ((pattern or b"x") * size)[:size]
    body = Encoded(gzip.compress(text, 1), "gzip")
    if size > MAX_BODY_BYTES:
        with pytest.raises(InvalidBody, match="has more than"):
            finished(expanded(body))
    else:
        assert finished(expanded(body)) == text
    assert expanded_inline(body) in {None, text}


@given(st.integers(1, 40), st.booleans())
def test_depth_is_bounded(depth: int, objects: bool) -> None:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if objects else [value]
    text = json.dumps(value).encode()
    if depth <= MAX_DEPTH:
        simple_json(Encoded(text))
    else:
        with pytest.raises(InvalidBody, match="nested deeper"):
            simple_json(Encoded(text))


@given(st.lists(packed_entries(), max_size=12), st.integers(0, 14), st.integers(0, 14))
def test_events_are_packed_again_from_any_known_one(entries: list[Any], first: int, known: int) -> None:
    items = json.dumps(pack(entries)).encode()
    events = finished(repacked(items, first, known, most=1000, most_bytes=2**20))
    expected = entries[max(0, known - first) :] if first <= known else []
    assert unpack(json.loads(b"[%b]" % events.items)) == expected
    assert (events.first, events.number) == (max(first, known), len(expected))


@pytest.mark.parametrize(
    "text", ["", "[", "[1", "[1,]", "[,1]", "{}", "[1]]", "[[1,2]", '["x"]', "[[1,2,[3]]]", "[1 2]"]
)
def test_items_that_are_not_packed_are_rejected(text: str) -> None:
    with pytest.raises(InvalidReport):
        finished(repacked(text.encode(), 0, 0, most=9, most_bytes=999))


def test_the_work_on_events_is_cut_into_slices() -> None:
    items = json.dumps([[1, 2, 0, 0, ""], *[1] * (5 * SLICE)]).encode()
    work = repacked(items, 0, 0, most=10**6, most_bytes=2**20)
    assert sum(1 for _ in work) == 6


HOSTILE = {
    # the body that stopped a leader: a long run text, and items of one byte
    "events with one long text": b',"events":{"first":0,"items":[[1,2,0,0,"%b"]%b]}'
    % (rb"\u0001" * 600, b",0" * 99_000),
    "clock steps": b',"events":{"first":0,"items":[%b]}' % b",".join([b'{"clock":1}'] * 80_000),
    "custom events": b',"events":{"first":0,"items":[%b]}' % b",".join([b'[1,22,"x",0,""]'] * 50_000),
    "kinds": b',"run":{"kinds":{%b}}' % b",".join(b'"%d":{}' % number for number in range(60_000)),
    "unknown lists": b',"x":[%b]' % b",".join([b"[]"] * 300_000),
    "configurations of empty objects": b',"configs":{"user":{%b}}'
    % b",".join(b'"%d":{}' % number for number in range(20_000)),
    "configurations of long lists": b',"configs":{"user":{%b}}'
    % b",".join(b'"%d":[%b0]' % (number, b"0," * 2000) for number in range(60)),
    "metrics": b',"metrics":{%b}' % b",".join(b'"%d":1' % number for number in range(90_000)),
    "short sessions": b',"sessions":[%b]' % b",".join([b'{"id":"a"}'] * 90_000),
    "long sessions": b',"sessions":[%b]'
    % b",".join([b'{"id":"%b","directory":"%b"}' % (b"i" * 200, b"d" * 2000)] * 32),
    "ports": b',"profiler":{"ports":[%b]}' % b",".join([b"1"] * 400_000),
    "message": b',"message":"%b"' % (b"m" * 900_000),
}
WORKING_BYTES = 2**20
"""Memory of the parser, once and not for each report: the loop parses one after the other."""


@given(st.sampled_from(sorted(HOSTILE)), st.integers(0, 1000), st.sampled_from([b"", b"\n"]))
@example("events with one long text", 0, b"")
def test_no_report_takes_four_times_its_size_of_memory_or_disk(name: str, cut: int, space: bytes) -> None:
    part = HOSTILE[name]
    text = (HEAD + part[: len(part) - cut if cut else None] + space + b"}")[:MAX_BODY_BYTES]
    cost = Cost(*map(min, cost_of(text), cost_of(text)))  # other threads of the test process can only add
    assert cost.peak <= 4 * len(text) + WORKING_BYTES
    assert cost.kept <= 4 * len(text) + 16_384
    assert cost.disk <= 4 * len(text) + 2048
    assert cost.kept <= 2 * cost.charged + 8192


class Cost(NamedTuple):
    """Bytes that a report takes."""

    peak: int
    kept: int
    charged: int
    disk: int


def cost_of(text: bytes) -> Cost:
    """Take a report, write it into a journal, and return what both took."""
    table = ReportTable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        with suppress(InvalidBody, InvalidReport):
            apply(table, KEY, parse(text), SENDER, 1.0)
        kept, peak = (size - before for size in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    charged = table.budget.state.used + table.budget.events.used
    if table.view(KEY) is None:
        return Cost(peak, kept, charged, 0)
    page = persist(table, KEY)
    disk = len(page.state) + sum(len(each.head) + len(each.lines) for each in page.segments.values())
    return Cost(peak, kept, charged, disk)


def test_an_honest_report_is_kept_whole() -> None:
    text = HEAD + b',"configs":{"user":{"lr":1}},"events":{"first":0,"items":[[1,2,0,0,""],5]},"unknown":[1]}'
    assert orjson.loads(text)["v"] == 1
    body = parse(text)
    table = ReportTable()
    apply(table, KEY, body, SENDER, 1.0)
    persist(table, KEY)
    assert table.answer(KEY, "00000001").model_dump() == {
        "persisted_sequence": 1,
        "persisted_events": 2,
        "interval_seconds": 10,
        "accepts_events": True,
    }
