"""The list of runs as JSON."""

import json
from dataclasses import replace

from mldiagnostics.runs.row import RunRow, run_row
from mldiagnostics_view.documents import runs_text
from mldiagnostics_view.sources.catalog import SourceList
from mldiagnostics_view.sources.source import ListedRun


def row(run_id: str, created: float) -> RunRow:
    return run_row({"runId": run_id, "created": created}, directory=f"/runs/{run_id}", now=created)


def listed(*lists: SourceList) -> list[tuple[str, str]]:
    return [(run["source"], run["runId"]) for run in json.loads(runs_text(lists))["runs"]]


def test_runs_of_all_sources_stand_newest_first() -> None:
    first = SourceList("a", "/a", "", [ListedRun("r1", row("r1", 1.0)), ListedRun("r3", row("r3", 3.0))])
    second = SourceList("b", "/b", "is old", [ListedRun("r2", row("r2", 2.0))])

    assert listed(first, second) == [("a", "r3"), ("b", "r2"), ("a", "r1")]
    assert json.loads(runs_text([first, second]))["sources"] == [
        {"name": "a", "place": "/a", "problem": None, "runs": 2},
        {"name": "b", "place": "/b", "problem": "is old", "runs": 1},
    ]
    assert json.loads(runs_text([])) == {"sources": [], "runs": []}


def test_a_new_version_of_a_run_has_a_new_text() -> None:
    before = ListedRun("r1", row("r1", 1.0))
    runs_text([SourceList("a", "/a", "", [before])])
    after = ListedRun("r1", replace(before.row, step=7))

    steps = [json.loads(runs_text([SourceList("a", "/a", "", [each])]))["runs"][0] for each in (before, after)]

    assert [each["progress"]["step"] for each in steps] == [None, 7]


def test_a_name_that_is_not_unicode_hides_no_other_run() -> None:
    broken = ListedRun("r2", replace(row("r2", 2.0), name="half \ud800 of a pair"))
    runs = [ListedRun("r1", row("r1", 1.0)), broken, ListedRun("r3", row("r3", 3.0))]

    assert listed(SourceList("a", "/a\ud800", "", runs)) == [("a", "r3"), ("a", "r2"), ("a", "r1")]
