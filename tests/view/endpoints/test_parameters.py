"""Parameters of URLs: each query that a client sends has bounds, or gets a sentence for people."""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view.curves.queries import CurveQuery, curves_of
from mldiagnostics_view.curves.rank_columns import rank_columns
from mldiagnostics_view.curves.reader import CurveReader
from mldiagnostics_view.endpoints.bodies import json_body
from mldiagnostics_view.endpoints.parameters import curve_query, metric_search, rank_query, run_names
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_BUCKETS, MAX_LISTED_REPORTS, MAX_QUERIED_METRICS, MAX_X
from multidict import MultiDict
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = st.one_of(
    st.floats().map(str),
    st.integers(-(10**400), 10**400).map(str),
    st.sampled_from(
        ["", "0", "1", "-1", "1e308", "-1e308", "1e19", "-1e19", "nan", "inf", "5e-324", "1_0", "٣", "4000"]
    ),
)
VALUES = st.one_of(NUMBERS, st.text(), st.sampled_from(["loss", "step", "time", "run", "rank", "device"]))
NAMES = st.sampled_from(["metric", "axis", "from", "to", "buckets", "by", "columns", "run", "q"])
LIKELY = st.lists(st.tuples(st.sampled_from(["from", "to", "buckets", "axis"]), VALUES), max_size=3).map(
    lambda pairs: [("metric", "loss"), *dict(pairs).items()]
)
QUERIES = (LIKELY | st.lists(st.tuples(NAMES | st.text(max_size=5), VALUES), max_size=40)).map(MultiDict)
MESSAGE_CHARS = 300


@pytest.fixture(scope="module")
def reader() -> Iterator[CurveReader]:
    """Points at extreme places: times and steps that no program has."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        put_run(store, "run")
        places = [(1e308, 2**62), (-1e308, -(2**62)), (0.0, 0), (1e9, 7), (5e-324, 1)]
        points = [Record("metric", t, "loss", 1.5, step=step, rank=0, attempt=0) for t, step in places]
        put_records(store, "run", "a0-r0-00000000-00001", *points)
        reader = CurveReader(f"{folder}/run")
        assert reader.read(1e9)
        yield reader
        reader.close()


@given(QUERIES)
def test_a_query_is_bounded_or_rejected_with_a_sentence(query: MultiDict[str]) -> None:
    rejected = []
    for parse in (rank_query, run_names, metric_search, curve_query):
        try:
            curves = parse(query)
        except RequestProblem as problem:
            curves = None
            rejected.append(problem)
    assert all(problem.status == 400 and len(problem.detail) < MESSAGE_CHARS for problem in rejected)
    if not isinstance(curves, CurveQuery):
        return
    assert 1 <= len(curves.metrics) <= MAX_QUERIED_METRICS
    assert 1 <= curves.buckets <= MAX_BUCKETS
    assert all(abs(x) <= MAX_X for x in (curves.start, curves.end) if x is not None)


@given(QUERIES)
def test_every_accepted_query_has_an_answer(reader: CurveReader, query: MultiDict[str]) -> None:
    for parse, answer in ((curve_query, curves_of), (rank_query, rank_columns)):
        try:
            parsed = parse(query)
        except RequestProblem:
            continue
        shown = json.loads(json_body(lambda answer=answer, parsed=parsed: answer(reader, parsed)).content)
        assert sum(len(curve["x"]) for curve in shown.get("curves", [])) <= MAX_BUCKETS


def test_each_run_is_named_once() -> None:
    query = MultiDict([("run", f"a/{at % MAX_LISTED_REPORTS}") for at in range(3 * MAX_LISTED_REPORTS)])
    assert run_names(query) == [f"a/{at}" for at in range(MAX_LISTED_REPORTS)]
